"""The rights of the chart's pods on their node and the cluster, and the origins of their images."""

import pytest

import make.chart
from agentworld_operator.resources.kinds import KINDS
from make.chart import VALUES, containers

_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}


@pytest.fixture(params=VALUES.values(), ids=VALUES)
def objects(request):
    """All objects, for each set of values."""
    return make.chart.objects(request.param)


def test_every_pod_meets_the_restricted_standard_with_a_read_only_root(objects):
    assert {"operator", "service"} <= make.chart.pods(objects).keys()
    for template in make.chart.pods(objects).values():
        spec = template["spec"]
        assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC", "hostUsers"}
        context = spec["securityContext"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        for volume in spec["volumes"]:
            assert volume.keys() - {"name"} <= _VOLUMES
            assert volume.get("emptyDir", {"sizeLimit": ""}).keys() >= {"sizeLimit"}
    for container in containers(objects):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPort" in port for port in container.get("ports", ()))


def test_every_container_has_cpu_and_memory_requests_and_limits(objects):
    for container in containers(objects):
        for kind in ("requests", "limits"):
            assert container["resources"][kind].keys() == {"cpu", "memory"}


def test_the_guide_shows_the_total_resources_of_all_pods():
    objects = make.chart.objects()
    amounts = [
        sum(
            item["spec"]["replicas"] * amount(item, kind, name)
            for item in objects
            if is_workload(item)
        )
        for kind in ("requests", "limits")
        for name in ("cpu", "memory")
    ]
    cpu, memory, most_cpu, most_memory = amounts
    row = f"| all pods | {cpu}m | {memory}Mi | {most_cpu // 1000} | {most_memory // 1024}Gi |"
    assert row in (make.chart.ROOT / "docs/guides/kubernetes.md").read_text()


def is_workload(item):
    return item["kind"] in ("Deployment", "StatefulSet")


def amount(item, kind, name):
    """The amount in thousandths of a processor, or in MiB."""
    [container] = item["spec"]["template"]["spec"]["containers"]
    text = str(container["resources"][kind][name])
    units = {"m": 1, "Mi": 1, "Gi": 1024}
    unit = next((unit for unit in units if text.endswith(unit)), "")
    return int(text.removesuffix(unit)) * units.get(unit, 1000)


def test_only_pods_that_use_the_kubernetes_api_have_an_account_token(objects):
    accounts = {item["metadata"]["name"] for item in objects if item["kind"] == "ServiceAccount"}
    for component, template in make.chart.pods(objects).items():
        spec = template["spec"]
        if component in ("operator", "service", "secrets", "console", "definitions"):
            assert spec["serviceAccountName"] == f"agentworld-{component}"
            assert spec["serviceAccountName"] in accounts
        else:
            assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False


def rules(objects):
    for role in objects:
        if role["kind"] in ("Role", "ClusterRole"):
            yield from ((role, rule) for rule in role["rules"])


def test_no_right_is_a_wildcard(objects):
    for _, rule in rules(objects):
        for values in rule.values():
            assert values
            assert not [value for value in values if "*" in value]


def test_no_role_reads_secrets_and_only_the_secrets_job_creates_them(objects):
    rights = {
        (role["metadata"]["name"], *rule["verbs"], *rule.get("resourceNames", ("any",)))
        for role, rule in rules(objects)
        if "secrets" in rule["resources"]
    }
    has_job = "secrets" in make.chart.pods(objects)
    assert rights == ({("agentworld-secrets", "create", "any")} if has_job else set())


def test_no_role_grants_rights_or_impersonates(objects):
    for _, rule in rules(objects):
        assert not {*rule["verbs"]} & {"bind", "escalate", "impersonate", "deletecollection"}
        assert not [
            resource for resource in rule["resources"] if resource in ("roles", "rolebindings")
        ]
        assert not [
            resource for resource in rule["resources"] if resource.endswith(("/exec", "/token"))
        ]


def test_cluster_roles_only_review_tokens_and_upgrade_the_definitions(objects):
    rights = {
        component: [
            (rule["resources"], rule.get("resourceNames"), rule["verbs"])
            for role, rule in rules(objects)
            if role["metadata"]["name"] == f"agentworld-worlds-{component}"
        ]
        for component in make.chart.pods(objects)
    }
    review_rights = [(["tokenreviews"], None, ["create"])]
    names = [f"{kind.plural}.agentworld.dev" for kind in KINDS]
    upgrade_rights = [(["customresourcedefinitions"], names, ["get", "patch"])]
    assert rights.pop("console", review_rights) == review_rights
    assert rights.pop("definitions", upgrade_rights) == upgrade_rights
    assert {
        name: component_rights for name, component_rights in rights.items() if component_rights
    } == {"service": review_rights}


def test_the_chart_uses_no_deprecated_api_and_requests_no_device(objects):
    """`v1.Endpoints` and `externalIPs` are deprecated; devices are for engines and steps, which ask
    by extended resources, and so by DRA where a cluster maps these.
    """
    assert not {item["kind"] for item in objects} & {"Endpoints", "ResourceClaim", "DeviceClass"}
    for _, rule in rules(objects):
        assert not {*rule["resources"]} & {"endpoints", "resourceclaims", "services/proxy"}
    for item in objects:
        assert item["kind"] != "Service" or "externalIPs" not in item["spec"]
    for template in make.chart.pods(objects).values():
        assert "resourceClaims" not in template["spec"]


def test_every_binding_grants_a_chart_role_to_a_chart_account_or_the_runs_account(objects):
    names = {(item["kind"], item["metadata"]["name"]) for item in objects}
    bindings = [item for item in objects if item["kind"].endswith("RoleBinding")]
    assert len(bindings) == len([item for item in objects if item["kind"].endswith("Role")])
    for binding in bindings:
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in names
        [account] = binding["subjects"]
        # The account of the runs is Kubeflow's.
        is_of_chart = binding["metadata"]["name"] != "agentworld-runs"
        assert ((account["kind"], account["name"]) in names) == is_of_chart
        assert account["namespace"] == "worlds"


@pytest.mark.parametrize(
    ("job", "right"), [("secrets", "Role"), ("definitions", "ClusterRole")], ids=lambda name: name
)
def test_a_hook_job_and_its_rights_are_deleted_before_the_release_is_created(job, right):
    hooks = {
        item["kind"]: item["metadata"]["annotations"]
        for item in make.chart.objects({"definitions": {"upgrade": True}})
        if "helm.sh/hook" in item["metadata"].get("annotations", {})
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == job
    }
    expected = {"Job", "NetworkPolicy", "ServiceAccount", right, f"{right}Binding"}
    assert hooks.keys() == expected
    for annotations in hooks.values():
        assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    weights = {
        kind: int(annotations.get("helm.sh/hook-weight", 0)) for kind, annotations in hooks.items()
    }
    assert weights.pop("Job") > max(weights.values())
