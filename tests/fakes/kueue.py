"""Kueue's webhooks for Deployments, as far as they concern queues, because the tests have no Kueue.

Copied in behavior, not in words, from `ValidateUpdate` and `Default` in
`pkg/controller/jobs/deployment/deployment_webhook.go` of kubernetes-sigs/kueue, commit 00caa31.
"""

from typing import Any

from agentworld.errors import ClusterError

QUEUE = "kueue.x-k8s.io/queue-name"

Object = dict[str, Any]


def check_update(old: Object, new: Object) -> None:
    """Raises the API server's error for an update that the webhook denies."""
    before, after = (item["metadata"].get("labels", {}).get(QUEUE, "") for item in (old, new))
    is_fixed = old.get("status", {}).get("readyReplicas", 0) > 0 or after == ""
    if is_fixed and before != after:
        field = f'metadata.labels[{QUEUE}]: Invalid value: "{after}": field is immutable'
        denial = f'admission webhook "vdeployment.kb.io" denied the request: {field}'
        raise ClusterError(denial, status=403)
