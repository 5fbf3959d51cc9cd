"""The life of a release on a real API server, from its install to its namespace's end.

Most tests share one release and leave it as they found it; the last ones end it.
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


def made_by(release):
    """Kind and name of all that the chart makes and that stays while it is installed."""
    for each in make.chart.objects({}, namespace=release.namespace.namespace):
        if "helm.sh/hook" not in each["metadata"].get("annotations", {}):
            yield each["kind"], each["metadata"]["name"]


def names(release):
    return {each for each in made_by(release) if release.get(*each)}


@pytest.fixture(scope="module")
def shared(new_release):
    """A release in whose namespace a team has created something."""
    release = new_release()
    release.install()
    used(release)
    return release


def used(release):
    """Simulators and an alias, created before the webhook was registered."""
    wait_for(lambda: all(defined(release, kind) for kind in KINDS))
    for made in (simulator("one"), simulator("two"), alias("one")):
        release.namespace.create(made)
    release.guard()
    return world(release)


def defined(release, kind):
    found = release.get("CustomResourceDefinition", f"{kind.plural}.agentworld.dev")
    told = (found or {}).get("status", {}).get("conditions", ())
    return ("Established", "True") in {(each["type"], each["status"]) for each in told}


def world(release):
    """The state of Simulators and aliases, without field managers."""
    found = [each for kind in KINDS for each in release.namespace.all(kind.kind).objects]
    assert len(found) == 3
    return [
        (each["metadata"]["name"], each["metadata"]["uid"], each["metadata"]["generation"])
        for each in found
    ]


def kept_secrets(release):
    """The complete Secrets."""
    found = [release.namespace.get("Secret", name) for name in KEPT_SECRETS]
    assert all(found)
    return found


def image(release, name="service"):
    found = release.get("Deployment", f"agentworld-{name}")
    return found["spec"]["template"]["spec"]["containers"][0]["image"]


def rules(release):
    return release.get("Role", "agentworld-operator")["rules"]


def test_an_install_creates_everything_and_prints_the_service_address(release):
    told = release.install()
    assert told["status"] == "deployed"
    host = f"agentworld-service.{release.namespace.namespace}.svc"
    assert f"http://{host}:8000" in told["notes"]
    assert names(release) == set(made_by(release))
    wait_for(lambda: all(defined(release, kind) for kind in KINDS))
    keys = release.namespace.get("Secret", "agentworld-keys")
    assert b"PRIVATE KEY" in base64.b64decode(keys["data"][SIGNER])
    for kind in ("Job", "ServiceAccount", "Role", "RoleBinding"):
        assert release.get(kind, "agentworld-secrets") is None


def test_releases_in_two_namespaces_are_independent(shared, release):
    there = names(shared)
    release.install()
    used(release)
    assert names(shared) == there == set(made_by(shared))
    release.uninstall()
    end_namespace(release)  # though nobody answers for the simulators in it
    assert names(shared) == there
    assert shared.upgrade()["status"] == "deployed"


def end_namespace(release):
    name = release.namespace.namespace
    release.namespace.delete("Namespace", name)
    wait_for(lambda: release.namespace.get("Namespace", name) is None)


def test_upgrade_and_rollback_change_only_chart_objects(release):
    release.install(previous=True)
    assert image(release).endswith("control:0.0.9")
    before, secrets, fewer = used(release), kept_secrets(release), rules(release)
    certified = believed(release)
    release.upgrade()
    assert image(release).endswith("control:0.1.0")
    assert len(rules(release)) == len(fewer) + 1
    assert world(release) == before
    assert kept_secrets(release) == secrets
    assert believed(release) == certified
    assert release.history() == [("0.0.9", "superseded"), ("0.1.0", "deployed")]
    release.roll_back()
    assert (image(release), rules(release)) == ("ghcr.io/agentworld/control:0.0.9", fewer)
    assert world(release) == before
    assert kept_secrets(release) == secrets
    assert release.history()[-1] == ("0.0.9", "deployed")


def believed(release):
    """The webhook's certificate with its authority, which the API server is configured to trust."""
    files = release.namespace.get("Secret", "agentworld-webhook")["data"]
    name = f"agentworld-{release.namespace.namespace}"
    for webhook in release.namespace.get("ValidatingWebhookConfiguration", name)["webhooks"]:
        assert webhook["clientConfig"]["caBundle"] == files["ca.crt"]
    return files


def test_an_upgrade_with_invalid_values_changes_nothing(shared):
    before, history = world(shared), shared.history()
    secrets, there = kept_secrets(shared), versions(shared)
    with pytest.raises(HelmReleaseError, match="'/operator/replicas': minimum"):
        shared.upgrade(operator={"replicas": 0})
    with pytest.raises(HelmReleaseError, match=r"monitoring\.existingSecret is empty"):
        shared.upgrade(monitoring={"serviceMonitor": {"enabled": True}})
    assert (world(shared), kept_secrets(shared)) == (before, secrets)
    assert versions(shared) == there
    assert shared.history() == history


def versions(release):
    """The resource versions without status, which other writers change."""
    found = [release.get(*each)["metadata"] for each in made_by(release)]
    return [each.get("generation", each["resourceVersion"]) for each in found]


def test_enabling_the_console_creates_its_objects_and_disabling_deletes_them(shared):
    asked = make.chart.objects({"console": {"enabled": True}}, namespace=shared.namespace.namespace)
    found = [(each["kind"], each["metadata"]["name"]) for each in asked]
    own = {each for each in found if each[1].endswith("-console")}
    assert {kind for kind, _ in own} >= {"Deployment", "Service", "NetworkPolicy", "ServiceAccount"}
    shared.upgrade(console={"enabled": True})
    assert {each for each in own if shared.get(*each)} == own
    shared.upgrade(console={"enabled": False})
    wait_for(lambda: not [each for each in own if shared.get(*each)])


@pytest.mark.usefixtures("shared")
def test_the_api_server_keeps_every_field_of_the_guides_objects(release):
    written = r"^```yaml\n(apiVersion: agentworld.*?)^```"
    blocks = re.findall(written, GUIDE.read_text(), re.M | re.S)
    for made in map(yaml.safe_load, blocks):
        metadata = {"name": made["metadata"]["name"]}
        release.namespace.create({**made, "metadata": metadata})
        found = release.namespace.get(made["kind"], metadata["name"])
        assert is_as_built({"spec": made["spec"]}, found)
    assert len(blocks) == len(KINDS)


def test_an_uninstall_keeps_secrets_and_custom_resources_for_a_new_install(shared):
    before, secrets = world(shared), kept_secrets(shared)
    shared.uninstall()
    wait_for(lambda: names(shared) == make.chart.KEPT)
    assert (world(shared), kept_secrets(shared)) == (before, secrets)
    shared.install()
    assert names(shared) == set(made_by(shared))
    assert (world(shared), kept_secrets(shared)) == (before, secrets)


def test_definitions_are_upgraded_by_a_separate_forced_apply(shared):
    """As in the notes: kubectl apply --server-side --force-conflicts."""
    before = world(shared)
    for path in sorted((shared.charts[1] / "crds").iterdir()):
        made = yaml.safe_load(path.read_text())
        [version] = made["spec"]["versions"]
        told = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        told["note"] = {"type": "string"}
        applied = apply(shared.cluster, made, force=False)
        assert applied.status_code == httpx.codes.CONFLICT
        assert ".spec.versions" in applied.text  # which Helm wrote
        assert apply(shared.cluster, made, force=True).status_code == httpx.codes.OK
    assert world(shared) == before
    shared.upgrade()
    assert "note" in str(shared.get("CustomResourceDefinition", "simulators.agentworld.dev"))


def apply(cluster, made, force):
    """Applies it as kubectl does."""
    places = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    return httpx.patch(
        f"{cluster.url}{places}/{made['metadata']['name']}",
        params={"fieldManager": "kubectl", "force": force},
        headers={
            "authorization": f"Bearer {cluster.token}",
            "content-type": "application/apply-patch+yaml",
        },
        content=yaml.safe_dump(made),
        verify=str(cluster.certificate),
        trust_env=False,
    )


def test_without_an_operator_no_alias_moves_and_a_simulator_may_be_deleted(shared):
    with pytest.raises(ClusterError, match=r"move\.agentworld\.dev"):
        shared.namespace.patch("SimulatorAlias", "stable", {"spec": {"simulator": "two"}})
    shared.namespace.delete("Simulator", "two")


def test_a_widened_role_blocks_the_next_upgrade(shared):
    path = API_RESOURCES["Role"].path(shared.namespace.namespace, "agentworld-operator")
    wider = [*rules(shared), {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]
    shared.namespace.call("PATCH", path, {"rules": wider})
    with pytest.raises(HelmReleaseError, match=r"agentworld-operator .* conflict with .*\.rules"):
        shared.upgrade()


def test_a_namespace_with_simulators_can_be_deleted_with_its_release_installed(shared):
    """Although no webhook responds."""
    end_namespace(shared)
