"""Checks the settings of a Kubeflow Pipelines server that the retries of steps need.

It only reads. Kubeflow sets no retry policy, so the defaults of Argo's workflow controller decide.
"""

import yaml

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import PIPELINES
from agentworld.errors import ClusterError, InputError
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


def missing_settings(
    connection: Connection, settings: ClusterSettings, namespace: str
) -> list[str]:
    """A sentence for each missing setting; `namespace` is Kubeflow's.

    Raises PipelineError if no Kubeflow Pipelines server answers.
    """
    problems = _of_users(connection)
    try:
        server = ApiServer(configuration(settings.kubeconfig))
        return problems + _of_controller(Cluster(server, namespace, PIPELINES))
    except (ClusterError, InputError) as error:
        return [*problems, f"Argo's settings cannot be read ({error})"]


def _of_users(connection: Connection) -> list[str]:
    if connection.is_multi_user() == bool(connection.namespace):
        return []
    if connection.namespace:
        return ["AGENTWORLD_KFP_NAMESPACE is set, and a server of one user refuses it; unset it"]
    return ["AGENTWORLD_KFP_NAMESPACE is not set; this server wants the namespace of a profile"]


def _of_controller(cluster: Cluster) -> list[str]:
    config_map = cluster.get("ConfigMap", _CONFIG_MAP)
    deployment = cluster.get("Deployment", _CONTROLLER)
    if config_map and deployment:
        return retry_problems(config_map, deployment)
    missing = f"Deployment {_CONTROLLER}" if config_map else f"ConfigMap {_CONFIG_MAP}"
    return [
        f"the namespace {cluster.namespace} has no {missing}; name Kubeflow's namespace with"
        " --kubeflow-namespace"
    ]


def retry_problems(config_map: Object, deployment: Object) -> list[str]:
    """Settings that prevent Argo from restarting failed pods; empty if there are none."""
    strategy = _strategy(config_map)
    policy, limit = strategy.get("retryPolicy"), strategy.get("limit")
    name = f"{_STRATEGY} of the ConfigMap {_CONFIG_MAP}"
    problems = []
    # An expression without a policy decides alone.
    if policy != "Always" and not ("expression" in strategy and policy is None):
        scope = _NOT_RETRIED.get(str(policy or "OnFailure"), "for such a word")
        problems.append(
            f"retryPolicy in {name} is {policy or 'not set'}: Argo does not replace a pod {scope};"
            " set it to Always"
        )
    if policy == "OnTransientError" and not _has_pattern(deployment):
        problems.append(f"{PATTERN} of the Deployment {_CONTROLLER} is not set; set it")
    if str(limit) != "0":
        problems.append(
            f"limit in {name} is {limit or 'not set'}: it also applies to the graphs around a step,"
            ' which Argo would repeat as a whole; set it to "0", for each step brings its own'
        )
    return problems


def _strategy(config_map: Object) -> Object:
    """The defaults, in either form that Argo reads; empty if there are none."""
    data = config_map.get("data") or {}
    try:
        whole = yaml.safe_load(data.get("config") or "") or {}
        defaults = whole.get("workflowDefaults") or yaml.safe_load(
            data.get("workflowDefaults") or ""
        )
    except (AttributeError, yaml.YAMLError) as error:
        raise InputError(f"the ConfigMap {_CONFIG_MAP} is not YAML; correct it") from error
    for part in ("spec", "templateDefaults", "retryStrategy"):
        defaults = defaults.get(part) if isinstance(defaults, dict) else None
    return defaults if isinstance(defaults, dict) else {}


def _has_pattern(deployment: Object) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    variables = [variable for container in containers for variable in container.get("env") or ()]
    return any(variable["name"] == PATTERN and variable.get("value") for variable in variables)
