"""kube-linter's default rules, because the program cannot be installed here.

Their names are those of `internal/defaultchecks/default_checks.go` of stackrox/kube-linter, commit
8d68919; each follows `pkg/builtinchecks/yamls`. As in kube-linter, an annotation
`ignore-check.kube-linter.io/NAME` of an object disables a rule, with a reason.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Object = dict[str, Any]
Rule = Callable[[Object, Sequence[Object]], bool]
"""Whether an object of a release violates it."""

_IGNORED = "ignore-check.kube-linter.io/"
_SENSITIVE = {"/", "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr"}
_SAFE_SYSCTLS = {
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
    *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
}
_PROBES = {"liveness": "livenessProbe", "readiness": "readinessProbe", "startup": "startupProbe"}


def lint(objects: Sequence[Object]) -> list[str]:
    """`RULE: KIND NAME` for each rule that an object of a release violates."""
    return [
        f"{name}: {item['kind']} {item['metadata']['name']}"
        for item in objects
        for name, breaks in RULES.items()
        if f"{_IGNORED}{name}" not in item["metadata"].get("annotations", {})
        and breaks(item, objects)
    ]


def template_of(item: Object) -> Object | None:
    """The pod template of any kind of workload."""
    if item["kind"] == "Pod":
        return item
    spec = item.get("spec", {})
    if item["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    template = spec.get("template")
    return template if isinstance(template, dict) and "spec" in template else None


def _pod(item: Object) -> Object:
    template = template_of(item)
    return template["spec"] if template else {}


def _containers(item: Object) -> list[Object]:
    spec = _pod(item)
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def _any_container(breaks: Callable[[Object, Object], bool]) -> Rule:
    """Applies a check to each container with its pod."""
    return lambda item, _: any(breaks(container, _pod(item)) for container in _containers(item))


def _is_subset(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def _labels(item: Object) -> Mapping[str, str]:
    template = template_of(item) or {}
    labels: Mapping[str, str] = template.get("metadata", {}).get("labels", {})
    return labels


def _dangling_service(item: Object, objects: Sequence[Object]) -> bool:
    if item["kind"] != "Service":
        return False
    selector = item["spec"].get("selector", {})
    return not any(_is_subset(selector, _labels(item)) for item in objects)


def _mismatching_selector(item: Object, _: Sequence[Object]) -> bool:
    if item["kind"] not in ("Deployment", "StatefulSet", "DaemonSet"):
        return False
    return not _is_subset(item["spec"]["selector"].get("matchLabels", {}), _labels(item))


def _no_anti_affinity(item: Object, _: Sequence[Object]) -> bool:
    if item["kind"] != "Deployment" or item["spec"].get("replicas", 1) < 2:
        return False
    return "podAntiAffinity" not in _pod(item).get("affinity", {})


def _non_existent_account(item: Object, objects: Sequence[Object]) -> bool:
    accounts = {item["metadata"]["name"] for item in objects if item["kind"] == "ServiceAccount"}
    return _pod(item).get("serviceAccountName", "default") not in {*accounts, "default"}


def _host_path(paths: set[str]) -> Rule:
    return lambda item, _: any(
        entry.get("hostPath", {}).get("path", "").rstrip("/") in {p.rstrip("/") for p in paths}
        for entry in _pod(item).get("volumes", [])
        if "hostPath" in entry
    )


def _uses_host(field: str) -> Rule:
    return lambda item, _: bool(_pod(item).get(field))


def _security(container: Object) -> Object:
    security: Object = container.get("securityContext", {})
    return security


def _keeps_net_raw(container: Object, _: Object) -> bool:
    return not {"ALL", "NET_RAW"} & set(
        _security(container).get("capabilities", {}).get("drop", [])
    )


def _may_be_root(container: Object, pod: Object) -> bool:
    security = pod.get("securityContext", {}) | _security(container)
    return not (security.get("runAsNonRoot") or security.get("runAsUser", 0) > 0)


def _has_secret_value(container: Object, _: Object) -> bool:
    return any(
        "secret" in item["name"].lower() and item.get("value") for item in container.get("env", [])
    )


def _has_variable_twice(container: Object, _: Object) -> bool:
    names = [item["name"] for item in container.get("env", [])]
    return len(names) > len(set(names))


def _has_no_version(container: Object, _: Object) -> bool:
    name = container["image"].rpartition("/")[2]
    return "@" not in name and (":" not in name or name.endswith(":latest"))


def _lacks(kind: str, resource: str) -> Rule:
    return _any_container(
        lambda container, _: not container.get("resources", {}).get(kind, {}).get(resource)
    )


def _has_no_port_of(probe: str) -> Rule:
    def breaks(container: Object, _: Object) -> bool:
        probe_fields = container.get(probe, {})
        port = probe_fields.get("httpGet", probe_fields.get("tcpSocket", {})).get("port")
        ports = container.get("ports", [])
        known_ports = {
            value for port in ports for value in (port.get("name"), port["containerPort"])
        }
        return port is not None and port not in known_ports

    return _any_container(breaks)


def _ports(item: Object) -> Iterator[int | str]:
    for container in _containers(item):
        for port in container.get("ports", []):
            yield from (port[name] for name in ("name", "containerPort") if name in port)
    if item["kind"] == "Service":
        yield from (port["targetPort"] for port in item["spec"]["ports"] if "targetPort" in port)


def _is_port(port: int | str) -> bool:
    if isinstance(port, int):
        return 0 < port < 2**16
    return bool(re.fullmatch(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?", port))


def _budget(breaks: Callable[[Object], bool]) -> Rule:
    return lambda item, _: item["kind"] == "PodDisruptionBudget" and breaks(item["spec"])


RULES: Mapping[str, Rule] = {
    "dangling-service": _dangling_service,
    "deprecated-service-account-field": lambda item, _: "serviceAccount" in _pod(item),
    "docker-sock": _host_path({"/var/run/docker.sock"}),
    "drop-net-raw-capability": _any_container(_keeps_net_raw),
    "duplicate-env-var": _any_container(_has_variable_twice),
    "env-var-secret": _any_container(_has_secret_value),
    "host-ipc": _uses_host("hostIPC"),
    "host-network": _uses_host("hostNetwork"),
    "host-pid": _uses_host("hostPID"),
    "invalid-target-ports": lambda item, _: not all(map(_is_port, _ports(item))),
    "latest-tag": _any_container(_has_no_version),
    **{f"{name}-port": _has_no_port_of(probe) for name, probe in _PROBES.items()},
    "mismatching-selector": _mismatching_selector,
    "no-anti-affinity": _no_anti_affinity,
    "no-extensions-v1beta": lambda item, _: item["apiVersion"].startswith("extensions/"),
    "no-read-only-root-fs": _any_container(
        lambda container, _: not _security(container).get("readOnlyRootFilesystem")
    ),
    "non-existent-service-account": _non_existent_account,
    "pdb-max-unavailable": _budget(lambda spec: spec.get("maxUnavailable") in (0, "0%")),
    "pdb-min-available": _budget(lambda spec: spec.get("minAvailable") == "100%"),
    "pdb-unhealthy-pod-eviction-policy": _budget(
        lambda spec: "unhealthyPodEvictionPolicy" not in spec
    ),
    "privilege-escalation-container": _any_container(
        lambda container, _: _security(container).get("allowPrivilegeEscalation", True)
    ),
    "privileged-container": _any_container(
        lambda container, _: bool(_security(container).get("privileged"))
    ),
    "run-as-non-root": _any_container(_may_be_root),
    "sensitive-host-mounts": _host_path(_SENSITIVE),
    "ssh-port": lambda item, _: 22 in _ports(item),
    "unsafe-sysctls": lambda item, _: any(
        entry["name"] not in _SAFE_SYSCTLS
        for entry in _pod(item).get("securityContext", {}).get("sysctls", [])
    ),
    "unset-cpu-requirements": _lacks("requests", "cpu"),
    "unset-memory-requirements": _lacks("limits", "memory"),
}
