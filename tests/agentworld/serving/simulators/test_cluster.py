import asyncio
from collections import Counter

import pytest

import make.ledger
from agentworld.errors import AccessError, ClusterError, Conflict, NotFound
from agentworld.records.statements.alias import Canary, gets_canary
from agentworld.serving.simulators.base import ConnectedSimulator, SimulatorRequest
from agentworld.serving.simulators.cluster import ClusterSimulators, cluster_reader
from agentworld.storage.objects import ObjectStore
from fakes import api_server
from make import records
from make.cluster import CANARY, STABLE, Cluster, refuse, simulator

EVIL = records.manifest(control_text="evil")


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def objects(tmp_path):
    return ObjectStore(str(tmp_path / "objects"))


@pytest.fixture
def ledger(tmp_path):
    return make.ledger.with_aliases(tmp_path, world=STABLE.digest)


@pytest.fixture
def aliases(ledger):
    """The ledger's aliases."""
    return ledger.aliases


@pytest.fixture
def simulators(cluster, ledger, objects):
    return new_simulators(cluster, ledger, objects)


def new_simulators(cluster, ledger, objects):
    return ClusterSimulators(
        cluster.read,
        objects,
        ledger,
        lambda manifest: ConnectedSimulator(manifest, None),
    )


def find(simulators, digest):
    return asyncio.run(simulators.find(digest)).manifest


def resolve(simulators, name="world", run="run", tenant="acme"):
    return asyncio.run(simulators.resolve(SimulatorRequest(name, run, tenant)))


def test_a_simulator_is_found_by_its_digest(simulators):
    assert find(simulators, CANARY.digest) == CANARY


def test_the_simulator_of_a_run_is_found_without_the_cluster(simulators, cluster, ledger, objects):
    find(simulators, STABLE.digest)
    ledger.open_run(make.ledger.OPENING, STABLE.digest)
    cluster.objects.clear()
    cluster.failing = ClusterError("gone")
    assert find(new_simulators(cluster, ledger, objects), STABLE.digest) == STABLE


@pytest.mark.parametrize("text", [EVIL.canonical, b"y" * 9000], ids=["manifest", "other"])
def test_a_text_in_the_object_store_is_not_found_as_a_simulator(simulators, objects, text):
    with pytest.raises(NotFound, match="no Simulator has the digest"):
        find(simulators, objects.put(text))


def accelerators(simulators, digest=STABLE.digest):
    return asyncio.run(simulators.find(digest)).accelerators()


def test_accelerators_are_read_from_the_status_of_the_custom_resource(simulators, cluster):
    cluster.simulator()["status"]["accelerators"] = ["1 x nvidia.com/gpu"]
    assert accelerators(simulators) == ("1 x nvidia.com/gpu",)
    cluster.simulator()["status"]["accelerators"] = ["cpu"]
    resolve(simulators)  # a run is opened
    assert accelerators(simulators) == ("cpu",)


def test_accelerators_are_unknown_without_a_reported_status(simulators, cluster, ledger, objects):
    assert accelerators(simulators) == ("unknown",)
    ledger.open_run(make.ledger.OPENING, STABLE.digest)
    cluster.failing = ClusterError("gone")  # a step does not ask the cluster
    assert accelerators(new_simulators(cluster, ledger, objects)) == ("unknown",)


def test_a_manifest_is_read_from_its_referenced_address(simulators, cluster, tmp_path):
    file = tmp_path / "manifest.json"
    file.write_bytes(STABLE.canonical)
    identity = {"reference": {"url": str(file), "digest": STABLE.digest}}
    cluster.simulator()["spec"] = {"identity": identity}
    assert find(simulators, STABLE.digest) == STABLE


def test_an_unknown_digest_is_not_found(simulators):
    with pytest.raises(NotFound, match="no Simulator has the digest"):
        find(simulators, records.digest("nobody's"))


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_run_resolves_an_alias_or_a_digest_to_its_simulator(simulators, name):
    assert resolve(simulators, name) == STABLE.digest


@pytest.mark.parametrize("spec", [{"simulator": "canary"}, None], ids=["changed", "deleted"])
def test_an_alias_is_resolved_by_the_ledger_and_not_by_its_custom_resource(
    simulators, cluster, spec
):
    if spec:
        cluster.objects["simulatoraliases/world"] = {"spec": spec}
    assert resolve(simulators) == STABLE.digest
    assert {path.partition("/")[0] for path in cluster.reads()} == {"simulators"}


def test_a_different_simulator_under_the_same_name_inherits_no_alias(simulators, cluster):
    resolve(simulators)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    with pytest.raises(NotFound, match=f"no Simulator has the digest {STABLE.digest}"):
        resolve(simulators)


def test_a_change_of_an_alias_in_the_ledger_takes_effect_at_once(simulators, aliases):
    resolve(simulators)
    aliases.set("world", CANARY.digest, "ada")
    assert resolve(simulators) == CANARY.digest
    aliases.end("world", "ada")
    with pytest.raises(NotFound, match="there is no alias 'world'"):
        resolve(simulators)


def test_a_canary_gets_the_runs_selected_by_gets_canary(simulators, aliases):
    canary = Canary(simulator=CANARY.digest, percent=30)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    for run in map(str, range(50)):
        expected = CANARY if gets_canary("world", run, 30) else STABLE
        assert resolve(simulators, run=run) == expected.digest


@pytest.mark.parametrize("alias", ["nobody", "../simulators/stable", "a b"])
def test_an_unknown_alias_is_not_found(simulators, alias):
    with pytest.raises(NotFound, match="there is no alias"):
        resolve(simulators, alias)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_simulator_with_differing_weights_opens_no_run(simulators, cluster, name):
    resolve(simulators, name)
    refuse(cluster.simulator(), "model.safetensors differs")
    with pytest.raises(Conflict, match=r"stable is not served: model\.safetensors differs"):
        resolve(simulators, name)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_failing_cluster_raises_a_retryable_cluster_error(simulators, cluster, name):
    resolve(simulators, name)
    cluster.failing = ClusterError("gone")
    with pytest.raises(ClusterError) as caught:
        resolve(simulators, name)
    assert caught.value.retryable
    with pytest.raises(ClusterError):
        find(simulators, CANARY.digest)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_simulator_serves_all_tenants_or_only_those_in_its_spec(simulators, cluster, name):
    cluster.change("stable", "rival", "acme")
    assert resolve(simulators, name) == STABLE.digest
    cluster.change("stable", "rival", "third")
    with pytest.raises(AccessError) as caught:
        resolve(simulators, name)
    assert (caught.value.kind, caught.value.retryable) == ("forbidden", False)
    assert str(caught.value) == (
        "tenant acme may open no run with Simulator stable; have acme added to its"
        " spec.serving.tenants, or name another simulator"
    )
    cluster.change("stable")
    assert resolve(simulators, name) == STABLE.digest


def test_missing_access_is_reported_before_differing_weights(simulators, cluster):
    cluster.change("stable", "rival")
    refuse(cluster.simulator(), "differs")
    with pytest.raises(AccessError):
        resolve(simulators)


def test_a_canary_gets_only_runs_of_its_tenants(simulators, cluster, aliases):
    canary = Canary(simulator=CANARY.digest, percent=99)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    cluster.change("canary", "rival")
    run = next(run for run in map(str, range(100)) if gets_canary("world", run, 99))
    assert resolve(simulators, run=run, tenant="rival") == CANARY.digest
    assert resolve(simulators, run=run, tenant="acme") == STABLE.digest


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_simulators_are_listed_only_for_an_unknown_digest(simulators, cluster, name):
    resolve(simulators, name)
    assert cluster.reads() == Counter(simulators=1)
    resolve(simulators, STABLE.digest)
    find(simulators, STABLE.digest)
    assert cluster.reads() == Counter({"simulators/stable": 2})


def test_concurrent_requests_for_an_unknown_digest_list_simulators_once(simulators, cluster):
    async def work():
        cluster.answers.clear()
        requests = [SimulatorRequest(STABLE.digest, str(number), "acme") for number in range(20)]
        tasks = [asyncio.create_task(simulators.resolve(request)) for request in requests]
        await asyncio.sleep(0.05)
        cluster.answers.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(work()) == [STABLE.digest] * 20
    assert cluster.reads()["simulators"] == 1


def test_a_simulator_is_searched_again_when_its_object_has_another_digest(simulators, cluster):
    resolve(simulators, STABLE.digest)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    cluster.objects["simulators/moved"] = simulator("moved", STABLE, "rival")
    with pytest.raises(AccessError, match="Simulator moved"):
        resolve(simulators, STABLE.digest)


@pytest.mark.parametrize("state", ["gone", "going"])
def test_a_deleted_simulator_opens_no_run_but_is_found_for_open_runs(
    simulators, cluster, ledger, state
):
    resolve(simulators, STABLE.digest)
    find(simulators, STABLE.digest)
    ledger.open_run(make.ledger.OPENING, STABLE.digest)
    if state == "gone":
        del cluster.objects["simulators/stable"]
    else:
        cluster.simulator()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for name in ("world", STABLE.digest):
        with pytest.raises(NotFound, match=f"no Simulator has the digest {STABLE.digest}, so it"):
            resolve(simulators, name)
    assert find(simulators, STABLE.digest) == STABLE


def add_twins(cluster, refused):
    """Adds two objects of one digest, each for its own tenant."""
    cluster.objects |= {
        "simulators/young": simulator("young", STABLE, "rival", created=20),
        "simulators/stable": simulator("stable", STABLE, "acme", created=10),
    }
    for name in refused:
        refuse(cluster.simulator(name), f"{name} is refused")


@pytest.mark.parametrize(
    ("refused", "tenant"), [((), "acme"), (["young"], "acme"), (["stable"], "rival")]
)
def test_of_two_objects_with_one_digest_the_served_object_decides(
    simulators, cluster, refused, tenant
):
    add_twins(cluster, refused)
    other_tenant = {"acme": "rival", "rival": "acme"}[tenant]
    assert resolve(simulators, STABLE.digest, tenant=tenant) == STABLE.digest
    with pytest.raises(AccessError):
        resolve(simulators, STABLE.digest, tenant=other_tenant)


def test_the_newly_served_object_of_two_with_one_digest_decides(simulators, cluster):
    add_twins(cluster, ["young"])
    resolve(simulators, STABLE.digest, tenant="acme")
    cluster.simulator("young")["status"]["conditions"] = []
    refuse(cluster.simulator("stable"), "differs")
    assert resolve(simulators, STABLE.digest, tenant="rival") == STABLE.digest


def test_the_error_for_two_refused_objects_names_the_older_object(simulators, cluster):
    add_twins(cluster, ["stable", "young"])
    with pytest.raises(Conflict, match="stable is refused"):
        resolve(simulators, STABLE.digest, tenant="acme")


def test_an_invalid_custom_resource_is_reported_and_opens_no_run(simulators, cluster):
    cluster.simulator()["spec"]["serving"] = {"tenants": "acme"}
    with pytest.raises(Conflict, match=r"stable in the cluster is wrong at spec\.serving\.tenants"):
        resolve(simulators, STABLE.digest)


def test_a_missing_simulator_resource_definition_is_a_retryable_error(tmp_path):
    with api_server.running(tmp_path) as server:
        path = "/apis/agentworld.dev/v1alpha1/namespaces/worlds/simulators/one"
        server.absent[path] = "404 page not found"
        with pytest.raises(ClusterError, match="does not serve simulators/one yet") as caught:
            cluster_reader("worlds", server.kubeconfig)("simulators/one")
    assert caught.value.retryable


def test_a_cluster_error_omits_the_message_of_the_api_server(tmp_path):
    with api_server.running(tmp_path) as server:
        read = cluster_reader("worlds", server.kubeconfig)
        with pytest.raises(
            ClusterError, match="cannot be asked for simulators/one .status 403"
        ) as (caught):
            read("simulators/one")
    assert caught.value.status == 403
    assert "serviceaccount" not in str(caught.value)
