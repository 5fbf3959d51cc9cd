"""Settings of a Kubeflow Pipelines server that the retries of steps need. It only reads.

Kubeflow names no policy for retries, so that the defaults of Argo's workflow controller decide.
"""

from collections.abc import Callable

import yaml

from agentworld.errors import ClusterError, InputError
from agentworld_pipelines.api_server import NOT_FOUND, ApiServer, Object, configuration
from agentworld_pipelines.connection import Connection
from agentworld_pipelines.settings import ClusterSettings

PATTERN = "TRANSIENT_ERROR_PATTERN"
_CONFIG_MAP = "workflow-controller-configmap"
_CONTROLLER = "workflow-controller"
_STRATEGY = "workflowDefaults.spec.templateDefaults.retryStrategy"
_NOT_RETRIED = {
    "OnFailure": "that vanished with its node",
    "OnError": "whose process failed, that ran out of memory or that was evicted",
    "OnTransientError": f"whose last message does not match {PATTERN}",
}


def missing_settings(at: Connection, settings: ClusterSettings, namespace: str) -> list[str]:
    """A sentence for each setting; `namespace` is the one that Kubeflow is in.

    Raises PipelineError where no Kubeflow Pipelines server answers.
    """
    problems = _of_users(at)
    try:
        server = ApiServer(configuration(settings.kubeconfig))
        return problems + _of_controller(lambda path: server.call("GET", path), namespace)
    except (ClusterError, InputError) as error:
        return [*problems, f"Argo's settings cannot be read ({error})"]


def _of_users(at: Connection) -> list[str]:
    if at.is_multi_user() == bool(at.namespace):
        return []
    if at.namespace:
        return ["AGENTWORLD_KFP_NAMESPACE is set, and a server of one user refuses it; unset it"]
    return ["AGENTWORLD_KFP_NAMESPACE is not set; this server wants the namespace of a profile"]


def _of_controller(get: Callable[[str], Object], namespace: str) -> list[str]:
    try:
        config_map = get(f"/api/v1/namespaces/{namespace}/configmaps/{_CONFIG_MAP}")
        deployment = get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{_CONTROLLER}")
    except ClusterError as error:
        if error.status != NOT_FOUND:
            raise
        return [f"{error}; name Kubeflow's namespace with --kubeflow-namespace"]
    return retry_problems(config_map, deployment)


def retry_problems(config_map: Object, deployment: Object) -> list[str]:
    """What keeps Argo from starting failed pods again; empty where nothing does."""
    strategy = _strategy(config_map)
    policy, limit = strategy.get("retryPolicy"), strategy.get("limit")
    name = f"{_STRATEGY} of the ConfigMap {_CONFIG_MAP}"
    problems = []
    # An expression without a policy decides alone.
    if policy != "Always" and not ("expression" in strategy and policy is None):
        which = _NOT_RETRIED.get(str(policy or "OnFailure"), "at all by such a word")
        problems.append(
            f"retryPolicy in {name} is {policy or 'not set'}: Argo starts no pod anew {which};"
            " set it to Always"
        )
    if policy == "OnTransientError" and not _has_pattern(deployment):
        problems.append(f"{PATTERN} of the Deployment {_CONTROLLER} is not set; set it")
    if str(limit) != "0":
        problems.append(
            f"limit in {name} is {limit or 'not set'}: it holds for the graphs around a step too,"
            ' which Argo would repeat whole; set it to "0", for each step brings its own'
        )
    return problems


def _strategy(config_map: Object) -> Object:
    """The defaults, in either form that Argo reads; empty where they say nothing."""
    data = config_map.get("data") or {}
    try:
        whole = yaml.safe_load(data.get("config") or "") or {}
        defaults = whole.get("workflowDefaults") or yaml.safe_load(
            data.get("workflowDefaults") or ""
        )
    except (AttributeError, yaml.YAMLError) as error:
        raise InputError(f"the ConfigMap {_CONFIG_MAP} is no YAML; correct it") from error
    for part in ("spec", "templateDefaults", "retryStrategy"):
        defaults = defaults.get(part) if isinstance(defaults, dict) else None
    return defaults if isinstance(defaults, dict) else {}


def _has_pattern(deployment: Object) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    variables = [each for container in containers for each in container.get("env") or ()]
    return any(each["name"] == PATTERN and each.get("value") for each in variables)
