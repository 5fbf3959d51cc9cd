"""The chart by the rules that kube-linter checks by default."""

from copy import deepcopy

import pytest

import make.chart
from machines.kube_linter import RULES, lint, template_of
from make.chart import EVERYTHING, VALUES


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_no_object_of_the_chart_breaks_a_rule(values):
    assert lint(make.chart.objects(values)) == []


def violations(item):
    """The rule that each change breaks, with the change; an object of the chart is changed."""
    metadata, template = item["metadata"], template_of(item)
    pod = template["spec"]
    container = pod["containers"][0]
    security = container["securityContext"]
    yield "deprecated-service-account-field", lambda: pod.update(serviceAccount="a")
    for rule, path in (("docker-sock", "/var/run/docker.sock"), ("sensitive-host-mounts", "/etc/")):
        volume = {"name": "host", "hostPath": {"path": path}}
        yield rule, lambda volume=volume: pod["volumes"].append(volume)
    yield "drop-net-raw-capability", lambda: security.update(capabilities={"drop": ["KILL"]})
    variable = {"name": "A", "value": "a"}
    yield "duplicate-env-var", lambda: container.update(env=[variable, variable])
    secret = {"name": "A_SECRET", "value": "a"}
    yield "env-var-secret", lambda: (container.update(env=[secret]), metadata.pop("annotations"))
    for rule, field in (
        ("host-ipc", "hostIPC"),
        ("host-network", "hostNetwork"),
        ("host-pid", "hostPID"),
    ):
        yield rule, lambda field=field: pod.update({field: True})
    port = {"name": "a_port", "containerPort": 1}
    yield "invalid-target-ports", lambda: container["ports"].append(port)
    yield "latest-tag", lambda: container.update(image="mirror.example:5000/control")
    probe = {"httpGet": {"path": "/", "port": 1}}
    for rule in ("liveness", "readiness", "startup"):
        field = f"{rule}Probe"
        yield f"{rule}-port", lambda field=field: container.update({field: probe})
    yield "mismatching-selector", lambda: template["metadata"].update(labels={"a": "b"})
    yield "no-anti-affinity", lambda: metadata.pop("annotations")
    yield "no-extensions-v1beta", lambda: item.update(apiVersion="extensions/v1beta1")
    yield "no-read-only-root-fs", lambda: security.pop("readOnlyRootFilesystem")
    yield "non-existent-service-account", lambda: pod.update(serviceAccountName="nobody")
    yield "privilege-escalation-container", lambda: security.pop("allowPrivilegeEscalation")
    yield "privileged-container", lambda: security.update(privileged=True)
    yield "run-as-non-root", lambda: pod.update(securityContext={})
    ssh = {"name": "ssh", "containerPort": 22}
    yield "ssh-port", lambda: container["ports"].append(ssh)
    sysctls = [{"name": "kernel.msgmax", "value": "1"}]
    yield "unsafe-sysctls", lambda: pod["securityContext"].update(sysctls=sysctls)
    yield "unset-cpu-requirements", lambda: container["resources"]["requests"].pop("cpu")
    yield "unset-memory-requirements", lambda: container["resources"]["limits"].pop("memory")


def budget_violations(budget):
    spec = budget["spec"]
    yield "pdb-max-unavailable", lambda: spec.update(maxUnavailable=0)
    yield "pdb-min-available", lambda: spec.update(minAvailable="100%")
    yield (
        "pdb-unhealthy-pod-eviction-policy",
        lambda: spec.pop("unhealthyPodEvictionPolicy"),
    )


def service_violations(service):
    yield "dangling-service", lambda: service["spec"].update(selector={"a": "b"})


CHANGES = {
    "Deployment": violations,
    "PodDisruptionBudget": budget_violations,
    "Service": service_violations,
}


@pytest.mark.compute
def test_each_rule_finds_its_violation():
    release = make.chart.objects(EVERYTHING)
    found_rules = set()
    for kind, changes in CHANGES.items():
        numbers = range(len(list(changes(deepcopy(operator_object(release, kind))))))
        for number in numbers:
            objects = deepcopy(release)
            rule, change = list(changes(operator_object(objects, kind)))[number]
            change()
            broken_rules = {line.partition(":")[0] for line in lint(objects)}
            assert rule in broken_rules, rule
            found_rules.add(rule)
    assert found_rules == RULES.keys()


def operator_object(objects, kind):
    return make.chart.only(
        objects, kind, f"agentworld-{'service' if kind == 'Service' else 'operator'}"
    )
