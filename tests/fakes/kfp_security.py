"""The security that Kubeflow Pipelines gives a step's pod, by what a compiled pipeline says.

Copied from kubeflow/pipelines, where nothing else decides it:

- `applySecurityContextToExecutorTemplate` gives every step the same
  (backend/src/v2/compiler/argocompiler/security_context.go, commit 07f35fc)
- `extendPodSpecPatch` adds the user of kfp-kubernetes' `set_security_context`
  (backend/src/v2/driver/k8s.go, commit 008dcd6; `runAsNonRoot` by pull request 12859)

Argo's own containers in the pod have theirs from `executor` of `workflow-controller-configmap`, and
are not copied.
"""

from typing import Any

Tree = dict[str, Any]

POD: Tree = {"seccompProfile": {"type": "RuntimeDefault"}}
_NUMBERS = {"runAsUser", "runAsGroup"}


def container_security(told: Tree) -> Tree:
    """Of a step, by the part of the compiled pipeline that only Kubernetes is told."""
    asked = told.get("securityContext", {})
    user = {name: int(value) if name in _NUMBERS else value for name, value in asked.items()}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **user,
    }


def pod(told: Tree) -> Tree:
    """As far as a Pod Security Standard looks at it."""
    claims = [
        {"name": each["constant"], "persistentVolumeClaim": {"claimName": each["constant"]}}
        for each in told.get("pvcMount", [])
    ]
    empty = [
        {"name": each["volumeName"], "emptyDir": {}} for each in told.get("emptyDirMounts", [])
    ]
    return {
        "securityContext": POD,
        "containers": [{"name": "main", "securityContext": container_security(told)}],
        "volumes": [*claims, *empty],
    }
