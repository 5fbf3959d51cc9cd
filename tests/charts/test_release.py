"""The life of a release on a real API server, from its install to its namespace's end.

Most tests share one release and leave it unchanged; the last tests delete it.
"""

import base64
import re

import httpx
import pytest
import yaml
from helm_python.errors import HelmReleaseError

import make.chart
from agentworld.errors import ClusterError
from agentworld.signing.keys import SIGNER
from agentworld_operator.policy.drift import is_as_built
from agentworld_operator.resources.kinds import KINDS
from machines.helm_release import API_RESOURCES
from make.simulator import alias, simulator
from waiting import wait_for

pytestmark = [pytest.mark.waits, pytest.mark.ordered]

GUIDE = make.chart.ROOT / "docs/guides/kubernetes.md"
KEPT_SECRETS = ("agentworld-database", "agentworld-keys")


def chart_names(release):
    """Kind and name of each chart object that exists while the release is installed."""
    for item in make.chart.objects({}, namespace=release.namespace.namespace):
        if "helm.sh/hook" not in item["metadata"].get("annotations", {}):
            yield item["kind"], item["metadata"]["name"]


def names(release):
    return {name for name in chart_names(release) if release.get(*name)}


@pytest.fixture(scope="module")
def shared(new_release):
    """A release in whose namespace a team has created something."""
    release = new_release()
    release.install()
    create_resources(release)
    return release


def create_resources(release):
    """Creates Simulators and an alias before the webhook is registered."""
    wait_for(lambda: all(is_defined(release, kind) for kind in KINDS))
    for resource in (simulator("one"), simulator("two"), alias("one")):
        release.namespace.create(resource)
    release.guard()
    return resource_states(release)


def is_defined(release, kind):
    definition = release.get("CustomResourceDefinition", f"{kind.plural}.agentworld.dev")
    conditions = (definition or {}).get("status", {}).get("conditions", ())
    return ("Established", "True") in {
        (condition["type"], condition["status"]) for condition in conditions
    }


def resource_states(release):
    """The state of Simulators and aliases, without field managers."""
    resources = [
        resource for kind in KINDS for resource in release.namespace.all(kind.kind).objects
    ]
    assert len(resources) == 3
    return [
        (
            resource["metadata"]["name"],
            resource["metadata"]["uid"],
            resource["metadata"]["generation"],
        )
        for resource in resources
    ]


def kept_secrets(release):
    """The complete Secrets."""
    secrets = [release.namespace.get("Secret", name) for name in KEPT_SECRETS]
    assert all(secrets)
    return secrets


def image(release, name="service"):
    deployment = release.get("Deployment", f"agentworld-{name}")
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


def rules(release):
    return release.get("Role", "agentworld-operator")["rules"]


def test_an_install_creates_everything_and_prints_the_service_address(release):
    result = release.install()
    assert result["status"] == "deployed"
    host = f"agentworld-service.{release.namespace.namespace}.svc"
    assert f"http://{host}:8000" in result["notes"]
    assert names(release) == set(chart_names(release))
    wait_for(lambda: all(is_defined(release, kind) for kind in KINDS))
    keys = release.namespace.get("Secret", "agentworld-keys")
    assert b"PRIVATE KEY" in base64.b64decode(keys["data"][SIGNER])
    for kind in ("Job", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding"):
        assert release.get(kind, "agentworld-secrets") is None


def test_releases_in_two_namespaces_are_independent(shared, release):
    shared_names = names(shared)
    release.install()
    create_resources(release)
    assert names(shared) == shared_names == set(chart_names(shared))
    release.uninstall()
    end_namespace(release)  # although no webhook responds for its Simulators
    assert names(shared) == shared_names
    assert shared.upgrade()["status"] == "deployed"


def end_namespace(release):
    name = release.namespace.namespace
    release.namespace.delete("Namespace", name)
    wait_for(lambda: release.namespace.get("Namespace", name) is None)


def test_upgrade_and_rollback_change_only_chart_objects(release):
    release.install(previous=True)
    assert image(release).endswith("control:0.0.9")
    before, secrets, previous_rules = (
        create_resources(release),
        kept_secrets(release),
        rules(release),
    )
    certificate_files = webhook_files(release)
    release.upgrade()
    assert image(release).endswith("control:0.1.0")
    assert len(rules(release)) == len(previous_rules) + 1
    assert resource_states(release) == before
    assert kept_secrets(release) == secrets
    assert webhook_files(release) == certificate_files
    assert release.history() == [("0.0.9", "superseded"), ("0.1.0", "deployed")]
    release.roll_back()
    assert (image(release), rules(release)) == ("ghcr.io/agentworld/control:0.0.9", previous_rules)
    assert resource_states(release) == before
    assert kept_secrets(release) == secrets
    assert release.history()[-1] == ("0.0.9", "deployed")


def webhook_files(release):
    """The webhook's certificate with its authority, which the API server is configured to trust."""
    files = release.namespace.get("Secret", "agentworld-webhook")["data"]
    name = f"agentworld-{release.namespace.namespace}"
    for webhook in release.namespace.get("ValidatingWebhookConfiguration", name)["webhooks"]:
        assert webhook["clientConfig"]["caBundle"] == files["ca.crt"]
    return files


def test_an_upgrade_with_invalid_values_changes_nothing(shared):
    before, history = resource_states(shared), shared.history()
    secrets, versions_before = kept_secrets(shared), versions(shared)
    with pytest.raises(HelmReleaseError, match="'/operator/replicas': minimum"):
        shared.upgrade(operator={"replicas": 0})
    with pytest.raises(HelmReleaseError, match=r"monitoring\.existingSecret is empty"):
        shared.upgrade(monitoring={"serviceMonitor": {"enabled": True}})
    assert (resource_states(shared), kept_secrets(shared)) == (before, secrets)
    assert versions(shared) == versions_before
    assert shared.history() == history


def versions(release):
    """The resource versions without status, which other writers change."""
    metadata_of_objects = [release.get(*name)["metadata"] for name in chart_names(release)]
    return [
        metadata.get("generation", metadata["resourceVersion"]) for metadata in metadata_of_objects
    ]


def test_enabling_the_console_creates_its_objects_and_disabling_deletes_them(shared):
    objects = make.chart.objects(
        {"console": {"enabled": True}}, namespace=shared.namespace.namespace
    )
    object_names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    console_names = {name for name in object_names if name[1].endswith("-console")}
    assert {kind for kind, _ in console_names} >= {
        "Deployment",
        "Service",
        "NetworkPolicy",
        "ServiceAccount",
    }
    shared.upgrade(console={"enabled": True})
    assert {name for name in console_names if shared.get(*name)} == console_names
    shared.upgrade(console={"enabled": False})
    wait_for(lambda: not [name for name in console_names if shared.get(*name)])


@pytest.mark.usefixtures("shared")
def test_the_api_server_keeps_every_field_of_the_guides_objects(release):
    pattern = r"^```yaml\n(apiVersion: agentworld.*?)^```"
    blocks = re.findall(pattern, GUIDE.read_text(), re.M | re.S)
    for manifest in map(yaml.safe_load, blocks):
        metadata = {"name": manifest["metadata"]["name"]}
        release.namespace.create({**manifest, "metadata": metadata})
        stored = release.namespace.get(manifest["kind"], metadata["name"])
        assert is_as_built({"spec": manifest["spec"]}, stored)
    assert len(blocks) == len(KINDS)


def test_an_uninstall_keeps_secrets_and_custom_resources_for_a_new_install(shared):
    before, secrets = resource_states(shared), kept_secrets(shared)
    shared.uninstall()
    wait_for(lambda: names(shared) == make.chart.KEPT)
    assert (resource_states(shared), kept_secrets(shared)) == (before, secrets)
    shared.install()
    assert names(shared) == set(chart_names(shared))
    assert (resource_states(shared), kept_secrets(shared)) == (before, secrets)


def test_definitions_are_upgraded_by_a_separate_forced_apply(shared):
    """As in the notes: kubectl apply --server-side --force-conflicts."""
    before = resource_states(shared)
    for path in sorted((shared.charts[1] / "crds").iterdir()):
        definition = yaml.safe_load(path.read_text())
        [version] = definition["spec"]["versions"]
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["note"] = {"type": "string"}
        answer = apply(shared.cluster, definition, force=False)
        assert answer.status_code == httpx.codes.CONFLICT
        assert ".spec.versions" in answer.text  # which Helm wrote
        assert apply(shared.cluster, definition, force=True).status_code == httpx.codes.OK
    assert resource_states(shared) == before
    shared.upgrade()
    assert "note" in str(shared.get("CustomResourceDefinition", "simulators.agentworld.dev"))


def apply(cluster, definition, force):
    """Applies a definition as kubectl does."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    return httpx.patch(
        f"{cluster.url}{path}/{definition['metadata']['name']}",
        params={"fieldManager": "kubectl", "force": force},
        headers={
            "authorization": f"Bearer {cluster.token}",
            "content-type": "application/apply-patch+yaml",
        },
        content=yaml.safe_dump(definition),
        verify=str(cluster.certificate),
        trust_env=False,
    )


def test_without_an_operator_no_alias_moves_and_a_simulator_may_be_deleted(shared):
    with pytest.raises(ClusterError, match=r"move\.agentworld\.dev"):
        shared.namespace.patch("SimulatorAlias", "stable", {"spec": {"simulator": "two"}})
    shared.namespace.delete("Simulator", "two")


def test_a_widened_role_blocks_the_next_upgrade(shared):
    path = API_RESOURCES["Role"].path(shared.namespace.namespace, "agentworld-operator")
    wider_rules = [*rules(shared), {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]
    shared.namespace.call("PATCH", path, {"rules": wider_rules})
    with pytest.raises(HelmReleaseError, match=r"agentworld-operator .* conflict with .*\.rules"):
        shared.upgrade()


def test_a_namespace_with_simulators_can_be_deleted_with_its_release_installed(shared):
    """Although no webhook responds."""
    end_namespace(shared)
