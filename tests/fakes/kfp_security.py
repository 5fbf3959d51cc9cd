"""The security context that Kubeflow Pipelines gives a step's pod, by the compiled pipeline.

Copied from kubeflow/pipelines, where only these functions decide it:

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


def container_security(config: Tree) -> Tree:
    """The security context of a step, from the part of the compiled pipeline for Kubernetes."""
    security_context = config.get("securityContext", {})
    user = {
        name: int(value) if name in _NUMBERS else value for name, value in security_context.items()
    }
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **user,
    }


def pod(config: Tree) -> Tree:
    """The fields of a pod that Pod Security Standards check."""
    claims = [
        {"name": mount["constant"], "persistentVolumeClaim": {"claimName": mount["constant"]}}
        for mount in config.get("pvcMount", [])
    ]
    empty_dirs = [
        {"name": mount["volumeName"], "emptyDir": {}} for mount in config.get("emptyDirMounts", [])
    ]
    return {
        "securityContext": POD,
        "containers": [{"name": "main", "securityContext": container_security(config)}],
        "volumes": [*claims, *empty_dirs],
    }
