"""The rights of the chart's pods on their node and the cluster, and the origins of their images."""

import pytest

import make.chart
from agentworld_operator.resources.kinds import KINDS
from make.chart import VALUES, containers

_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}


@pytest.fixture(params=VALUES.values(), ids=VALUES)
def found(request):
    """All objects, for each set of values."""
    return make.chart.objects(request.param)


def test_every_pod_meets_the_restricted_standard_with_a_read_only_root(found):
    assert {"operator", "service"} <= make.chart.pods(found).keys()
    for template in make.chart.pods(found).values():
        spec = template["spec"]
        assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC", "hostUsers"}
        told = spec["securityContext"]
        assert told["runAsNonRoot"]
        assert told["runAsUser"] > 0
        assert told["seccompProfile"] == {"type": "RuntimeDefault"}
        for volume in spec["volumes"]:
            assert volume.keys() - {"name"} <= _VOLUMES
            assert volume.get("emptyDir", {"sizeLimit": ""}).keys() >= {"sizeLimit"}
    for container in containers(found):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPort" in port for port in container.get("ports", ()))


def test_every_container_has_cpu_and_memory_requests_and_limits(found):
    for container in containers(found):
        for told in ("requests", "limits"):
            assert container["resources"][told].keys() == {"cpu", "memory"}


def test_the_guide_shows_the_total_resources_of_all_pods():
    found = make.chart.objects()
    told = [
        sum(each["spec"]["replicas"] * amount(each, which, name) for each in found if runs(each))
        for which in ("requests", "limits")
        for name in ("cpu", "memory")
    ]
    cpu, memory, most_cpu, most_memory = told
    row = f"| all pods | {cpu}m | {memory}Mi | {most_cpu // 1000} | {most_memory // 1024}Gi |"
    assert row in (make.chart.ROOT / "docs/guides/kubernetes.md").read_text()


def runs(found):
    return found["kind"] in ("Deployment", "StatefulSet")


def amount(found, which, name):
    """In thousandths of a processor, or in MiB."""
    [container] = found["spec"]["template"]["spec"]["containers"]
    told = str(container["resources"][which][name])
    units = {"m": 1, "Mi": 1, "Gi": 1024}
    unit = next((unit for unit in units if told.endswith(unit)), "")
    return int(told.removesuffix(unit)) * units.get(unit, 1000)


def test_only_pods_that_use_the_kubernetes_api_have_an_account_token(found):
    accounts = {each["metadata"]["name"] for each in found if each["kind"] == "ServiceAccount"}
    for component, template in make.chart.pods(found).items():
        spec = template["spec"]
        if component in ("operator", "service", "secrets", "console", "definitions"):
            assert spec["serviceAccountName"] == f"agentworld-{component}"
            assert spec["serviceAccountName"] in accounts
        else:
            assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False


def rules(found):
    for each in found:
        if each["kind"] in ("Role", "ClusterRole"):
            yield from ((each, rule) for rule in each["rules"])


def test_no_right_is_a_wildcard(found):
    for _, rule in rules(found):
        for words in rule.values():
            assert words
            assert not [word for word in words if "*" in word]


def test_no_role_reads_secrets_and_only_the_secrets_job_creates_them(found):
    allowed = {
        (each["metadata"]["name"], *rule["verbs"], *rule.get("resourceNames", ("any",)))
        for each, rule in rules(found)
        if "secrets" in rule["resources"]
    }
    makes_any = "secrets" in make.chart.pods(found)
    assert allowed == ({("agentworld-secrets", "create", "any")} if makes_any else set())


def test_no_role_grants_rights_or_impersonates(found):
    for _, rule in rules(found):
        assert not {*rule["verbs"]} & {"bind", "escalate", "impersonate", "deletecollection"}
        assert not [each for each in rule["resources"] if each in ("roles", "rolebindings")]
        assert not [each for each in rule["resources"] if each.endswith(("/exec", "/token"))]


def test_cluster_roles_only_review_tokens_and_upgrade_the_definitions(found):
    told = {
        component: [
            (rule["resources"], rule.get("resourceNames"), rule["verbs"])
            for each, rule in rules(found)
            if each["metadata"]["name"] == f"agentworld-worlds-{component}"
        ]
        for component in make.chart.pods(found)
    }
    asks = [(["tokenreviews"], None, ["create"])]
    names = [f"{kind.plural}.agentworld.dev" for kind in KINDS]
    ours = [(["customresourcedefinitions"], names, ["get", "patch"])]
    assert told.pop("console", asks) == asks
    assert told.pop("definitions", ours) == ours
    assert {name: each for name, each in told.items() if each} == {"service": asks}


def test_the_chart_uses_no_deprecated_api_and_requests_no_device(found):
    """`v1.Endpoints` and `externalIPs` are deprecated; devices are for engines and steps, which ask
    by extended resources, and so by DRA where a cluster maps these.
    """
    assert not {each["kind"] for each in found} & {"Endpoints", "ResourceClaim", "DeviceClass"}
    for _, rule in rules(found):
        assert not {*rule["resources"]} & {"endpoints", "resourceclaims", "services/proxy"}
    for each in found:
        assert each["kind"] != "Service" or "externalIPs" not in each["spec"]
    for template in make.chart.pods(found).values():
        assert "resourceClaims" not in template["spec"]


def test_every_binding_grants_a_chart_role_to_a_chart_account_or_the_runs_account(found):
    there = {(each["kind"], each["metadata"]["name"]) for each in found}
    bindings = [each for each in found if each["kind"].endswith("RoleBinding")]
    assert len(bindings) == len([each for each in found if each["kind"].endswith("Role")])
    for each in bindings:
        assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in there
        [account] = each["subjects"]
        # The account of the runs is Kubeflow's.
        is_ours = each["metadata"]["name"] != "agentworld-runs"
        assert ((account["kind"], account["name"]) in there) == is_ours
        assert account["namespace"] == "worlds"


@pytest.mark.parametrize(
    ("job", "right"), [("secrets", "Role"), ("definitions", "ClusterRole")], ids=lambda name: name
)
def test_a_hook_job_and_its_rights_are_deleted_before_the_release_is_created(job, right):
    hooks = {
        each["kind"]: each["metadata"]["annotations"]
        for each in make.chart.objects({"definitions": {"upgrade": True}})
        if "helm.sh/hook" in each["metadata"].get("annotations", {})
        if each["metadata"]["labels"]["app.kubernetes.io/component"] == job
    }
    assert hooks.keys() == {"Job", right, f"{right}Binding", "ServiceAccount"}
    for each in hooks.values():
        assert each["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert each["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    weights = {kind: int(each.get("helm.sh/hook-weight", 0)) for kind, each in hooks.items()}
    assert weights.pop("Job") > max(weights.values())
