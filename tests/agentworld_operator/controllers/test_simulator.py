"""An operator, in a separate process, with a real API server."""

import re
import time

import httpx
import pytest

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import DIGEST_LABEL, engine_name
from agentworld.engine.process import free_port
from agentworld.errors import ClusterError
from make.simulator import pinned_manifest, simulator
from waiting import wait_for, wait_until_unchanged

pytestmark = pytest.mark.waits

CHILDREN = ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
ENGINE = engine_name(pinned_manifest("one").digest)


def replicas(namespace, name=ENGINE):
    deployment = namespace.get("Deployment", name)
    return deployment and deployment["spec"]["replicas"]


def make_ready(namespace):
    """Sets the status as a kubelet would, because there is no node here."""
    ready = [{"type": "Ready", "status": "True"}]

    def pods():
        return namespace.all("Pod", DIGEST_LABEL).objects

    wait_for(pods)
    for pod in pods():
        path = API_RESOURCES["Pod"].path(namespace.namespace, pod["metadata"]["name"]) + "/status"
        namespace.call("PATCH", path, {"status": {"phase": "Running", "conditions": ready}})


def test_a_simulator_gets_its_digest_its_engine_and_its_conditions(namespace, start):
    port = free_port()
    start(metrics_port=port)
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one").get("EngineReady") == ("False", "Starting"))
    status = namespace.get("Simulator", "one")["status"]
    assert status["digest"] == pinned_manifest("one").digest
    assert [namespace.get(kind, ENGINE)["kind"] for kind in CHILDREN] == [*CHILDREN]
    make_ready(namespace)
    wait_for(lambda: namespace.conditions("one")["EngineReady"] == ("True", "Serving"))
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    assert "agentworld_operator_leader 1.0" in metrics
    rounds = re.search(r'reconciles_total{kind="Simulator",result="ok"} (\d+)', metrics)
    assert int(rounds[1]) >= 2


def test_the_operator_writes_only_the_status_of_a_simulator(namespace, start):
    start()
    resource = namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one"))
    metadata = namespace.get("Simulator", "one")["metadata"]
    assert metadata["generation"] == resource["metadata"]["generation"]
    assert not {"finalizers", "annotations"} & metadata.keys()


def test_a_changed_or_deleted_child_is_restored(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    path = API_RESOURCES["Deployment"].path(namespace.namespace, ENGINE)
    namespace.call("PATCH", path, {"spec": {"replicas": 9}})
    wait_for(lambda: replicas(namespace) == 1)
    namespace.delete("Service", ENGINE)
    wait_for(lambda: namespace.get("Service", ENGINE))


def test_resource_amounts_may_be_numbers(namespace, start):
    start()
    namespace.create(simulator(resources={"limits": {"nvidia.com/gpu": 1, "cpu": 2}}))
    wait_for(lambda: replicas(namespace) == 1)
    spec = namespace.get("Deployment", ENGINE)["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1", "cpu": "2"}


def test_deleting_a_simulator_deletes_its_children(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    namespace.delete("Simulator", "one")
    wait_for(lambda: not any(namespace.get(kind, ENGINE) for kind in CHILDREN))


def test_a_serving_change_scales_or_suspends_the_engine(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    namespace.change("one", replicas=3)
    wait_for(lambda: replicas(namespace) == 3)
    namespace.change("one", suspend=True)
    wait_for(lambda: replicas(namespace) == 0)
    wait_for(lambda: namespace.conditions("one")["Ready"] == ("False", "Suspended"))


def test_open_episodes_scale_an_engine_up_and_down_to_zero(namespace, start, service):
    digest = pinned_manifest("one").digest
    start()
    bounds = {"min": 0, "max": 2, "episodesPerReplica": 10, "idleSeconds": 1}
    namespace.create(simulator(bounds=bounds))
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("True", "Idle"))
    assert replicas(namespace) == 0
    service.tell(digest, 11)
    wait_for(lambda: replicas(namespace) == 2)
    wait_for(lambda: namespace.get("Simulator", "one")["status"]["openEpisodes"] == 11)
    service.tell(digest, 0)
    wait_for(lambda: replicas(namespace) == 0)


def test_the_older_of_two_simulators_with_one_digest_is_served_until_deleted(namespace, start):
    start()
    namespace.create(simulator("one"))
    wait_for(lambda: replicas(namespace) == 1)
    time.sleep(1)  # ages have whole seconds
    namespace.create(simulator("twin", seed="one"))
    wait_for(lambda: namespace.conditions("twin").get("Ready") == ("False", "SameAsAnother"))
    namespace.delete("Simulator", "one")
    wait_for(lambda: namespace.conditions("twin")["Ready"] == ("False", "Starting"))


def test_an_invalid_simulator_does_not_delay_other_simulators(namespace, start):
    start()
    wrong = simulator("wrong")
    del wrong["spec"]["serving"]["weights"]
    namespace.create(wrong)
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("wrong").get("Ready") == ("False", "NotPlaced"))
    wait_for(lambda: replicas(namespace) == 1)


def test_nothing_is_written_while_nothing_changes(namespace, start):
    start()
    for number in range(5):
        namespace.create(simulator(f"world-{number}"))
    wait_for(lambda: all(namespace.conditions(f"world-{number}") for number in range(5)))
    kinds = ("Simulator", *CHILDREN, "Event")
    # Kubernetes' own controllers still record their work on the Deployments.
    wait_until_unchanged(lambda: [versions(namespace, kind) for kind in kinds], seconds=3)


def test_a_change_of_tenants_changes_only_the_status(namespace, start):
    def written_versions():
        """All versions but those of the statuses that Kubernetes' own controllers write."""
        children = [namespace.get(kind, ENGINE)["metadata"] for kind in CHILDREN]
        messages = [event["message"] for event in namespace.all("Event").objects]
        return (
            [metadata.get("generation", metadata["resourceVersion"]) for metadata in children],
            [message for message in messages if "Ready" in message],
        )

    def generations():
        resource = namespace.get("Simulator", "one")
        return resource["metadata"]["generation"], resource["status"]["observedGeneration"]

    start()
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("False", "Starting"))
    before = written_versions()
    namespace.change("one", tenants=["acme"])
    wait_for(lambda: generations() == (2, 2))
    time.sleep(1)
    assert written_versions() == before


@pytest.mark.parametrize("tenants", [["Acme"], ["acme", "acme"], "acme"])
def test_the_api_server_refuses_invalid_tenant_lists(namespace, tenants):
    with pytest.raises(ClusterError, match="tenants"):
        namespace.create(simulator(tenants=tenants))


def versions(namespace, kind):
    resources = namespace.all(kind).objects
    return {
        resource["metadata"]["name"]: resource["metadata"]["resourceVersion"]
        for resource in resources
    }


def test_condition_transitions_are_recorded_as_events(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    make_ready(namespace)
    wait_for(lambda: ("EngineReady", "True") in transitions(namespace))


def transitions(namespace):
    events = namespace.all("Event").objects
    return {tuple(event["message"].partition(":")[0].split(" is ")) for event in events}


def test_a_second_operator_takes_over_after_the_first_is_killed(namespace, start):
    first = start("first", lease_seconds=8)
    wait_for(first.leads)
    second = start("second", lease_seconds=8)
    namespace.create(simulator())
    wait_for(lambda: replicas(namespace) == 1)
    assert not second.leads()
    first.kill()
    namespace.change("one", replicas=2)
    wait_for(lambda: replicas(namespace) == 2)
    assert second.leads()


def test_a_stopped_operator_releases_its_lease(start):
    first = start("first")
    wait_for(first.leads)
    assert first.stop() == 0
    second = start("second")
    wait_for(second.leads)
