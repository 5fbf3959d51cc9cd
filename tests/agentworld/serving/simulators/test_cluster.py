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


def test_one_that_was_found_once_is_found_without_the_cluster(
    simulators, cluster, aliases, tmp_path
):
    found(simulators, STABLE.digest)
    cluster.objects.clear()
    cluster.failing = ClusterError("gone")
    assert found(made(cluster, aliases, tmp_path), STABLE.digest) == STABLE


def accelerators(simulators, digest=STABLE.digest):
    return asyncio.run(simulators.find(digest)).accelerators()


def test_an_episode_is_recorded_with_what_the_operator_says(simulators, cluster):
    cluster.simulator()["status"]["accelerators"] = ["1 x nvidia.com/gpu"]
    assert accelerators(simulators) == ("1 x nvidia.com/gpu",)
    cluster.simulator()["status"]["accelerators"] = ["cpu"]
    meant(simulators)  # a run is opened
    assert accelerators(simulators) == ("cpu",)


def test_what_nobody_said_to_this_service_is_unknown(simulators, cluster, aliases, tmp_path):
    assert accelerators(simulators) == ("unknown",)
    cluster.failing = ClusterError("gone")  # which is asked for no step
    assert accelerators(made(cluster, aliases, tmp_path)) == ("unknown",)


def test_a_manifest_is_read_from_where_it_is_kept(simulators, cluster, tmp_path):
    file = tmp_path / "manifest.json"
    file.write_bytes(STABLE.canonical)
    identity = {"reference": {"url": str(file), "digest": STABLE.digest}}
    cluster.simulator()["spec"] = {"identity": identity}
    assert found(simulators, STABLE.digest) == STABLE


def test_one_that_nobody_created_is_not_there(simulators):
    with pytest.raises(NotFound, match="no Simulator has the digest"):
        found(simulators, records.digest("nobody's"))


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_run_means_the_simulator_that_it_names(simulators, name):
    assert meant(simulators, name) == STABLE.digest


@pytest.mark.parametrize("spec", [{"simulator": "canary"}, None], ids=["changed", "deleted"])
def test_an_object_decides_nothing_about_what_an_alias_means(simulators, cluster, spec):
    if spec:
        cluster.objects["simulatoraliases/world"] = {"spec": spec}
    assert meant(simulators) == STABLE.digest
    assert {path.partition("/")[0] for path in cluster.reads()} == {"simulators"}


def test_a_simulator_that_takes_anothers_name_takes_over_no_alias(simulators, cluster):
    meant(simulators)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    with pytest.raises(NotFound, match=f"no Simulator has the digest {STABLE.digest}"):
        meant(simulators)


def test_an_alias_that_moves_in_the_ledger_or_ends_there_does_so_at_once(simulators, aliases):
    meant(simulators)
    aliases.set("world", CANARY.digest, "ada")
    assert meant(simulators) == CANARY.digest
    aliases.end("world", "ada")
    with pytest.raises(NotFound, match="there is no alias 'world'"):
        meant(simulators)


def test_a_canary_gets_the_runs_that_it_gets_on_one_machine(simulators, aliases):
    canary = Canary(simulator=CANARY.digest, percent=30)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    for run in map(str, range(50)):
        wanted = CANARY if gets_canary("world", run, 30) else STABLE
        assert meant(simulators, run=run) == wanted.digest


@pytest.mark.parametrize("alias", ["nobody", "../simulators/stable", "a b"])
def test_an_alias_that_nobody_made_is_not_there(simulators, alias):
    with pytest.raises(NotFound, match="there is no alias"):
        meant(simulators, alias)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_one_whose_weights_are_others_is_not_opened(simulators, cluster, name):
    meant(simulators, name)
    refuse(cluster.simulator(), "model.safetensors differs")
    with pytest.raises(Conflict, match=r"stable is not served: model\.safetensors differs"):
        meant(simulators, name)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_cluster_that_does_not_answer_is_told_as_such(simulators, cluster, name):
    meant(simulators, name)
    cluster.failing = ClusterError("gone")
    with pytest.raises(ClusterError) as failed:
        meant(simulators, name)
    assert failed.value.retryable
    with pytest.raises(ClusterError):
        found(simulators, CANARY.digest)


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_a_simulator_is_for_everybody_or_for_the_tenants_that_it_names(simulators, cluster, name):
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


def test_who_may_not_is_told_that_first(simulators, cluster):
    cluster.change("stable", "rival")
    refuse(cluster.simulator(), "differs")
    with pytest.raises(AccessError):
        meant(simulators)


def test_a_canary_is_tried_with_runs_of_those_alone_whom_it_is_for(simulators, cluster, aliases):
    canary = Canary(simulator=CANARY.digest, percent=99)
    aliases.set("world", STABLE.digest, "ada", canary=canary)
    cluster.change("canary", "rival")
    run = next(run for run in map(str, range(100)) if gets_canary("world", run, 99))
    assert meant(simulators, run=run, tenant="rival") == CANARY.digest
    assert meant(simulators, run=run, tenant="acme") == STABLE.digest


@pytest.mark.parametrize("name", ["world", STABLE.digest])
def test_all_objects_are_listed_for_a_digest_that_nobody_knows_and_never_again(
    simulators, cluster, name
):
    meant(simulators, name)
    assert cluster.reads() == Counter(simulators=1)
    meant(simulators, STABLE.digest)
    found(simulators, STABLE.digest)
    assert cluster.reads() == Counter({"simulators/stable": 2})


def test_many_who_ask_at_once_for_a_digest_that_nobody_knows_list_once(simulators, cluster):
    async def work():
        cluster.answers.clear()
        wanted = [SimulatorRequest(STABLE.digest, str(number), "acme") for number in range(20)]
        asked = [asyncio.create_task(simulators.resolve(each)) for each in wanted]
        await asyncio.sleep(0.05)
        cluster.answers.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(work()) == [STABLE.digest] * 20
    assert cluster.reads()["simulators"] == 1


def test_an_object_that_is_another_one_by_now_is_looked_for_anew(simulators, cluster):
    meant(simulators, STABLE.digest)
    cluster.objects["simulators/stable"] = simulator("stable", CANARY)
    cluster.objects["simulators/moved"] = simulator("moved", STABLE, "rival")
    with pytest.raises(AccessError, match="Simulator moved"):
        meant(simulators, STABLE.digest)


@pytest.mark.parametrize("way", ["gone", "going"])
def test_one_whose_object_is_gone_opens_no_run_and_is_found_for_those_that_are_open(
    simulators, cluster, way
):
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
def test_of_two_objects_of_one_digest_the_one_counts_that_is_served(
    simulators, cluster, refused, served
):
    twins(cluster, refused)
    other = {"acme": "rival", "rival": "acme"}[served]
    assert meant(simulators, STABLE.digest, tenant=served) == STABLE.digest
    with pytest.raises(AccessError):
        meant(simulators, STABLE.digest, tenant=other)


def test_a_twin_that_is_served_from_now_on_is_the_one_that_counts(simulators, cluster):
    twins(cluster, ["young"])
    meant(simulators, STABLE.digest, tenant="acme")
    cluster.simulator("young")["status"]["conditions"] = []
    refuse(cluster.simulator("stable"), "differs")
    assert meant(simulators, STABLE.digest, tenant="rival") == STABLE.digest


def test_where_none_of_two_is_served_the_older_one_says_why(simulators, cluster):
    twins(cluster, ["stable", "young"])
    with pytest.raises(Conflict, match="stable is refused"):
        meant(simulators, STABLE.digest, tenant="acme")


def test_an_object_that_cannot_be_read_is_said_to_be_wrong_and_lets_nobody_in(simulators, cluster):
    cluster.simulator()["spec"]["serving"] = {"tenants": "acme"}
    with pytest.raises(Conflict, match=r"stable in the cluster is wrong at spec\.serving\.tenants"):
        meant(simulators, STABLE.digest)


def test_an_api_server_that_does_not_know_simulators_yet_is_asked_again_later(tmp_path):
    with api_server.running(tmp_path) as server:
        path = "/apis/agentworld.dev/v1alpha1/namespaces/worlds/simulators/one"
        server.absent[path] = "404 page not found"
        with pytest.raises(ClusterError, match="does not serve simulators/one yet") as early:
            cluster_reader("worlds", server.kubeconfig)("simulators/one")
    assert early.value.retryable


def test_who_opens_a_run_is_not_told_the_api_servers_own_words(tmp_path):
    with api_server.running(tmp_path) as server:
        read = cluster_reader("worlds", server.kubeconfig)
        with pytest.raises(
            ClusterError, match="cannot be asked for simulators/one .status 403"
        ) as (failed):
            read("simulators/one")
    assert failed.value.status == 403
    assert "serviceaccount" not in str(failed.value)
