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


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def aliases(tmp_path):
    """The ledger's aliases."""
    return make.ledger.aliases(tmp_path, world=STABLE.digest)


@pytest.fixture
def simulators(cluster, aliases, tmp_path):
    return made(cluster, aliases, tmp_path)


def made(cluster, aliases, folder):
    objects = ObjectStore(str(folder / "objects"))
    return ClusterSimulators(
        cluster.read,
        objects,
        aliases,
        lambda manifest: ConnectedSimulator(manifest, None),
    )


def found(simulators, digest):
    return asyncio.run(simulators.find(digest)).manifest


def meant(simulators, name="world", run="run", tenant="acme"):
    return asyncio.run(simulators.resolve(SimulatorRequest(name, run, tenant)))


def test_a_simulator_is_found_by_its_digest(simulators):
    assert found(simulators, CANARY.digest) == CANARY


def test_a_simulator_found_before_is_found_without_the_cluster(
    simulators, cluster, aliases, tmp_path
):
    found(simulators, STABLE.digest)
    cluster.objects.clear()
    cluster.failing = ClusterError("gone")
    assert found(made(cluster, aliases, tmp_path), STABLE.digest) == STABLE


def accelerators(simulators, digest=STABLE.digest):
    return asyncio.run(simulators.find(digest)).accelerators()


def test_accelerators_are_read_from_the_status_of_the_custom_resource(simulators, cluster):
    cluster.simulator()["status"]["accelerators"] = ["1 x nvidia.com/gpu"]
    assert accelerators(simulators) == ("1 x nvidia.com/gpu",)
    cluster.simulator()["status"]["accelerators"] = ["cpu"]
    meant(simulators)  # a run is opened
    assert accelerators(simulators) == ("cpu",)


def test_accelerators_are_unknown_without_a_reported_status(simulators, cluster, aliases, tmp_path):
    assert accelerators(simulators) == ("unknown",)
    cluster.failing = ClusterError("gone")  # which is asked for no step
    assert accelerators(made(cluster, aliases, tmp_path)) == ("unknown",)


def test_a_manifest_is_read_from_its_referenced_address(simulators, cluster, tmp_path):
    file = tmp_path / "manifest.json"
    file.write_bytes(STABLE.canonical)
    identity = {"reference": {"url": str(file), "digest": STABLE.digest}}
    cluster.simulator()["spec"] = {"identity": identity}
    assert found(simulators, STABLE.digest) == STABLE


def test_an_unknown_digest_is_not_found(simulators):
    with pytest.raises(NotFound, match="no Simulator has the digest"):
        found(simulators, records.digest("nobody's"))


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_run_resolves_an_alias_or_a_digest_to_its_simulator(simulators, name):
    assert meant(simulators, name) == STABLE.digest


@pytest.mark.parametrize("spec", [{"simulator": "canary"}, None], ids=["changed", "deleted"])
def test_an_alias_is_resolved_by_the_ledger_and_not_by_its_custom_resource(
    simulators, cluster, spec
):
    if spec:
        cluster.objects["simulatoraliases/world"] = {"spec": spec}
    assert meant(simulators) == STABLE.digest
    assert {path.partition("/")[0] for path in cluster.reads()} == {"simulators"}


def test_a_different_simulator_under_the_same_name_inherits_no_alias(simulators, cluster):
    meant(simulators)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    with pytest.raises(NotFound, match=f"no Simulator has the digest {STABLE.digest}"):
        meant(simulators)


def test_a_change_of_an_alias_in_the_ledger_takes_effect_at_once(simulators, aliases):
    meant(simulators)
    aliases.set("world", CANARY.digest, "ada")
    assert meant(simulators) == CANARY.digest
    aliases.end("world", "ada")
    with pytest.raises(NotFound, match="there is no alias 'world'"):
        meant(simulators)


def test_a_canary_gets_the_runs_selected_by_gets_canary(simulators, aliases):
    canary = Canary(simulator=CANARY.digest, percent=30)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    for run in map(str, range(50)):
        wanted = CANARY if gets_canary("world", run, 30) else STABLE
        assert meant(simulators, run=run) == wanted.digest


@pytest.mark.parametrize("alias", ["nobody", "../simulators/stable", "a b"])
def test_an_unknown_alias_is_not_found(simulators, alias):
    with pytest.raises(NotFound, match="there is no alias"):
        meant(simulators, alias)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_simulator_with_differing_weights_opens_no_run(simulators, cluster, name):
    meant(simulators, name)
    refuse(cluster.simulator(), "model.safetensors differs")
    with pytest.raises(Conflict, match=r"stable is not served: model\.safetensors differs"):
        meant(simulators, name)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_failing_cluster_raises_a_retryable_cluster_error(simulators, cluster, name):
    meant(simulators, name)
    cluster.failing = ClusterError("gone")
    with pytest.raises(ClusterError) as failed:
        meant(simulators, name)
    assert failed.value.retryable
    with pytest.raises(ClusterError):
        found(simulators, CANARY.digest)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_simulator_serves_all_tenants_or_only_those_in_its_spec(simulators, cluster, name):
    cluster.change("stable", "rival", "acme")
    assert meant(simulators, name) == STABLE.digest
    cluster.change("stable", "rival", "third")
    with pytest.raises(AccessError) as refused:
        meant(simulators, name)
    assert (refused.value.kind, refused.value.retryable) == ("forbidden", False)
    assert str(refused.value) == (
        "tenant acme may open no run with Simulator stable; have acme added to its"
        " spec.serving.tenants, or name another simulator"
    )
    cluster.change("stable")
    assert meant(simulators, name) == STABLE.digest


def test_missing_access_is_reported_before_differing_weights(simulators, cluster):
    cluster.change("stable", "rival")
    refuse(cluster.simulator(), "differs")
    with pytest.raises(AccessError):
        meant(simulators)


def test_a_canary_gets_only_runs_of_its_tenants(simulators, cluster, aliases):
    canary = Canary(simulator=CANARY.digest, percent=99)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    cluster.change("canary", "rival")
    run = next(run for run in map(str, range(100)) if gets_canary("world", run, 99))
    assert meant(simulators, run=run, tenant="rival") == CANARY.digest
    assert meant(simulators, run=run, tenant="acme") == STABLE.digest


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_simulators_are_listed_only_for_an_unknown_digest(simulators, cluster, name):
    meant(simulators, name)
    assert cluster.reads() == Counter(simulators=1)
    meant(simulators, STABLE.digest)
    found(simulators, STABLE.digest)
    assert cluster.reads() == Counter({"simulators/stable": 2})


def test_concurrent_requests_for_an_unknown_digest_list_simulators_once(simulators, cluster):
    async def work():
        cluster.answers.clear()
        wanted = [SimulatorRequest(STABLE.digest, str(number), "acme") for number in range(20)]
        asked = [asyncio.create_task(simulators.resolve(each)) for each in wanted]
        await asyncio.sleep(0.05)
        cluster.answers.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(work()) == [STABLE.digest] * 20
    assert cluster.reads()["simulators"] == 1


def test_a_simulator_is_searched_again_when_its_object_has_another_digest(simulators, cluster):
    meant(simulators, STABLE.digest)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    cluster.objects["simulators/moved"] = simulator("moved", STABLE, "rival")
    with pytest.raises(AccessError, match="Simulator moved"):
        meant(simulators, STABLE.digest)


@pytest.mark.parametrize("way", ["gone", "going"])
def test_a_deleted_simulator_opens_no_run_but_is_found_for_open_runs(simulators, cluster, way):
    meant(simulators, STABLE.digest)
    found(simulators, STABLE.digest)
    if way == "gone":
        del cluster.objects["simulators/stable"]
    else:
        cluster.simulator()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for name in ("world", STABLE.digest):
        with pytest.raises(NotFound, match=f"no Simulator has the digest {STABLE.digest}, so it"):
            meant(simulators, name)
    assert found(simulators, STABLE.digest) == STABLE


def twins(cluster, refused):
    """Two objects of one digest, each for its own tenant."""
    cluster.objects |= {
        "simulators/young": simulator("young", STABLE, "rival", created=20),
        "simulators/stable": simulator("stable", STABLE, "acme", created=10),
    }
    for name in refused:
        refuse(cluster.simulator(name), f"{name} is refused")


@pytest.mark.parametrize(
    ("refused", "served"), [((), "acme"), (["young"], "acme"), (["stable"], "rival")]
)
def test_of_two_objects_with_one_digest_the_served_object_decides(
    simulators, cluster, refused, served
):
    twins(cluster, refused)
    other = {"acme": "rival", "rival": "acme"}[served]
    assert meant(simulators, STABLE.digest, tenant=served) == STABLE.digest
    with pytest.raises(AccessError):
        meant(simulators, STABLE.digest, tenant=other)


def test_the_newly_served_object_of_two_with_one_digest_decides(simulators, cluster):
    twins(cluster, ["young"])
    meant(simulators, STABLE.digest, tenant="acme")
    cluster.simulator("young")["status"]["conditions"] = []
    refuse(cluster.simulator("stable"), "differs")
    assert meant(simulators, STABLE.digest, tenant="rival") == STABLE.digest


def test_the_error_for_two_refused_objects_names_the_older_object(simulators, cluster):
    twins(cluster, ["stable", "young"])
    with pytest.raises(Conflict, match="stable is refused"):
        meant(simulators, STABLE.digest, tenant="acme")


def test_an_invalid_custom_resource_is_reported_and_opens_no_run(simulators, cluster):
    cluster.simulator()["spec"]["serving"] = {"tenants": "acme"}
    with pytest.raises(Conflict, match=r"stable in the cluster is wrong at spec\.serving\.tenants"):
        meant(simulators, STABLE.digest)


def test_a_missing_simulator_resource_definition_is_a_retryable_error(tmp_path):
    with api_server.running(tmp_path) as server:
        path = "/apis/agentworld.dev/v1alpha1/namespaces/worlds/simulators/one"
        server.absent[path] = "404 page not found"
        with pytest.raises(ClusterError, match="does not serve simulators/one yet") as early:
            cluster_reader("worlds", server.kubeconfig)("simulators/one")
    assert early.value.retryable


def test_a_cluster_error_omits_the_message_of_the_api_server(tmp_path):
    with api_server.running(tmp_path) as server:
        read = cluster_reader("worlds", server.kubeconfig)
        with pytest.raises(
            ClusterError, match="cannot be asked for simulators/one .status 403"
        ) as (failed):
            read("simulators/one")
    assert failed.value.status == 403
    assert "serviceaccount" not in str(failed.value)
