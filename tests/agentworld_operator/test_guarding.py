"""The webhook of an operator, in a separate process, with a real API server and a real service."""

import time

import httpx
import pytest

import make.service
from agentworld.engine.process import free_port
from agentworld.errors import ClusterError
from agentworld.records.run import RunClosing
from agentworld.storage.objects import ObjectStore
from make import records
from make.simulator import alias, pinned_manifest, schedule, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

DIGEST = pinned_manifest("one").digest
OTHER_DIGEST = pinned_manifest("two").digest
GATE = [{"metric": "live_gain", "least": 0.3}]


def test_an_identity_change_and_an_invalid_spec_are_refused(running):
    namespace = running.namespace
    running.use("one")
    identity = simulator("two")["spec"]["identity"]
    with pytest.raises(ClusterError, match="create a new Simulator and move the alias"):
        namespace.patch("Simulator", "one", {"spec": {"identity": identity}})
    namespace.change("one", replicas=2)
    weights = {"claim": "weights", "url": "s3://weights"}
    with pytest.raises(ClusterError, match="name a claim, a url or an image, one of the three"):
        namespace.change("one", weights=weights)
    assert namespace.get("Simulator", "one")["spec"]["serving"]["replicas"] == 2
    with pytest.raises(ClusterError, match="has the minute '61'"):
        namespace.create(schedule(cron="61 3 * * *"))
    namespace.create(schedule())


def test_a_simulator_with_an_alias_or_an_open_run_is_not_deleted(running):
    namespace = running.namespace
    running.use("one", "two")
    namespace.create(alias("two", canary={"simulator": "one", "percent": 10}))
    for name in ("one", "two"):
        with pytest.raises(ClusterError, match=f"{name} is what stable means; move or delete"):
            namespace.delete("Simulator", name)
    namespace.delete("SimulatorAlias", "stable")
    assert [change["ended"] for change in running.history()] == [False, True]
    namespace.delete("Simulator", "two")
    run = make.service.run(running.url)
    with pytest.raises(ClusterError, match=r"one has open runs \(1\); close them first"):
        namespace.delete("Simulator", "one")
    closing = RunClosing(final_weights=records.digest("final")).model_dump(mode="json")
    httpx.post(f"{running.url}/runs/{run}/close", json=closing, trust_env=False)
    namespace.delete("Simulator", "one")


def test_the_webhook_does_not_block_the_deletion_of_a_namespace(running):
    namespace = running.namespace
    running.use("one")
    namespace.create(alias())
    make.service.run(running.url)
    namespace.delete("Namespace", running.name)
    wait_for(lambda: namespace.get("Namespace", running.name) is None)


def test_an_alias_moves_only_past_its_gate_and_the_history_names_the_user(running, world):
    namespace = running.namespace
    running.use("one", "two")
    namespace.create(alias())
    reports = ObjectStore(str(world.store / "objects"))
    good, bad = (
        reports.put(
            records.agent_report(simulator=OTHER_DIGEST, live_gain=records.estimate(gain)).canonical
        )
        for gain in (0.4, 0.2)
    )
    target = {"simulator": "two", "gate": GATE}
    for spec, message in (
        (target, "no report is named"),
        (target | {"report": bad}, "live_gain is 0.2 in the report"),
        (target | {"report": records.digest("lost")}, "is not in the object store"),
        (target | {"simulator": "nobody"}, "there is no Simulator nobody"),
    ):
        with pytest.raises(ClusterError, match=message):
            namespace.patch("SimulatorAlias", "stable", {"spec": spec})
    assert len(running.history()) == 1
    namespace.patch("SimulatorAlias", "stable", {"spec": target | {"report": good}})
    first, second = running.history()
    assert (first["simulator"], first["set_by"]) == (DIGEST, "admin")
    assert (second["simulator"], second["report"], second["override"]) == (OTHER_DIGEST, good, None)
    changes = {"report": bad, "override": {"reason": "an outage"}}
    namespace.patch("SimulatorAlias", "stable", {"spec": changes})
    assert running.history()[-1]["override"] == "an outage"
    wait_for(lambda: conditions(namespace).get("Recorded") == ("True", "AsAsked"))
    wait_for(lambda: namespace.get("SimulatorAlias", "stable")["status"]["digest"] == OTHER_DIGEST)


def test_a_label_change_and_a_dry_run_are_not_recorded(running):
    running.use("one")
    assert running.refused(alias(name="dry")) == ""
    assert running.history("dry")["error"]["kind"] == "not-found"
    running.namespace.create(alias())
    labels = {"metadata": {"labels": {"team": "a"}}}
    running.namespace.patch("SimulatorAlias", "stable", labels)
    assert len(running.history()) == 1


def test_creating_an_existing_alias_again_does_not_move_the_alias(running):
    """The API server calls the webhook before it looks for an object with the same name."""
    running.use("one", "two")
    running.namespace.create(alias())
    with pytest.raises(ClusterError, match="there is a SimulatorAlias stable already"):
        running.namespace.create(alias("two"))
    assert [change["simulator"] for change in running.history()] == [DIGEST]


def conditions(namespace, name="stable"):
    return namespace.conditions(name, "SimulatorAlias")


def test_without_a_service_no_alias_is_created_and_no_simulator_is_deleted(guarded):
    """Only the service knows the aliases of a Simulator."""
    guarded.run(service_url=f"http://127.0.0.1:{free_port()}")
    guarded.guard()
    guarded.use("one")
    with pytest.raises(ClusterError, match="the simulator service does not answer"):
        guarded.namespace.create(alias())
    with pytest.raises(ClusterError, match="the simulator service does not answer"):
        guarded.namespace.delete("Simulator", "one")


def test_a_duplicate_of_a_served_simulator_may_be_deleted_despite_its_alias(running):
    namespace = running.namespace
    running.use("one")
    namespace.create(alias())
    time.sleep(1)  # the API server stores ages in whole seconds
    namespace.create(simulator("twin", "one"))
    wait_for(lambda: namespace.conditions("twin").get("Ready") == ("False", "SameAsAnother"))
    namespace.delete("Simulator", "twin")


def test_a_new_certificate_is_served_by_every_replica_without_a_restart(running):
    port = free_port()
    second = running.run("second", port=port)
    wait_for(lambda: running.ask(port))
    before = running.ask()
    assert running.ask(port) == before  # a replica that does not lead answers, too
    running.renew_certificate()
    for replica in (running.port, port):
        wait_for(lambda replica=replica: running.ask(replica) not in (b"", before))
    assert running.ask(port) == running.ask()
    assert "there is no Simulator nobody" in running.refused(alias("nobody"))
    assert not second.leads()
