import pytest

from agentworld.cluster.records.serving import Bounds
from agentworld.cluster.records.simulator import SimulatorStatus
from agentworld.errors import ClusterError
from agentworld.records.simulator import Endpoint
from agentworld_operator.policy.engine import EngineState
from agentworld_operator.policy.identity import SimulatorIdentity
from agentworld_operator.policy.problem import Problem
from agentworld_operator.policy.simulator import (
    SimulatorState,
    refusal_of,
    refused_status,
    served_status,
)
from make import records
from make.simulator import pinned_manifest, serving

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
MANIFEST = pinned_manifest()
IDENTITY = SimulatorIdentity(MANIFEST.digest, MANIFEST)
READY = EngineState(replicas=1, ready=1, verified=True)


def simulator_state(**fields):
    defaults = {
        "generation": 3,
        "serving": serving(),
        "status": SimulatorStatus(),
        "engine": READY,
        "target_replicas": 1,
        "open_episodes": 0,
        "url": "http://simulators",
    }
    return SimulatorState(**defaults | fields)


def conditions_of(status):
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_accelerators_are_those_of_running_replicas_or_else_of_the_spec():
    pool = {"selector": {"pool": "h100"}}
    serving_spec = serving(resources={"limits": {"nvidia.com/gpu": 1}}, nodePool=pool)
    status = served_status(
        simulator_state(serving=serving_spec, engine=EngineState()), IDENTITY, NOW
    )
    assert status.accelerators == ("1 x nvidia.com/gpu on pool=h100",)
    running_engine = READY._replace(accelerators=("cpu",))
    assert served_status(
        simulator_state(serving=serving_spec, engine=running_engine), IDENTITY, NOW
    ).accelerators == ("cpu",)


def test_an_endpoint_has_unknown_accelerators():
    endpoint = Endpoint(url="http://models.example/v1", model="world")
    manifest = records.manifest(engine=endpoint, artifact=None, files={})
    status = served_status(simulator_state(), SimulatorIdentity(manifest.digest, manifest), NOW)
    assert status.accelerators == ("unknown",)


def test_a_long_message_is_cut_to_the_limit_of_a_condition():
    refusal = Problem("Refused", "no " * 20_000)
    status = refused_status(1, SimulatorStatus(), None, refusal, NOW)
    assert {len(condition.message) for condition in status.conditions} == {0, 32_768}


def test_a_verified_and_ready_engine_makes_the_simulator_ready():
    assert conditions_of(served_status(simulator_state(), IDENTITY, NOW)) == {
        "Verified": ("True", "FilesMatch"),
        "EngineReady": ("True", "Serving"),
        "Ready": ("True", "Serving"),
        "Degraded": ("False", "AsWanted"),
    }


@pytest.mark.parametrize(
    ("engine", "ready", "degraded"),
    [
        (EngineState(1, 0), ("False", "Starting"), ("False", "AsWanted")),
        (
            EngineState(1, 0, problem=Problem("Unschedulable", "full")),
            ("False", "Unschedulable"),
            ("True", "Unschedulable"),
        ),
        (
            EngineState(2, 1, True, Problem("EngineEnded", "out of memory")),
            ("True", "Serving"),
            ("True", "EngineEnded"),
        ),
        (
            EngineState(2, 1, True, Problem("VerificationFailed", "other files")),
            ("False", "VerificationFailed"),
            ("True", "VerificationFailed"),
        ),
    ],
    ids=["starts", "no node", "one of two", "wrong weights in one of two"],
)
def test_the_engine_state_determines_ready_and_degraded(engine, ready, degraded):
    conditions = conditions_of(
        served_status(simulator_state(engine=engine, target_replicas=2), IDENTITY, NOW)
    )
    assert (conditions["Ready"], conditions["Degraded"]) == (ready, degraded)


def test_a_simulator_scaled_to_zero_by_its_bounds_is_ready():
    idle_state = simulator_state(
        engine=EngineState(), target_replicas=0, serving=serving(bounds=Bounds())
    )
    conditions = conditions_of(served_status(idle_state, IDENTITY, NOW))
    assert conditions["EngineReady"] == ("False", "ScaledToZero")
    assert conditions["Ready"] == ("True", "Idle")


def test_a_simulator_with_zero_requested_replicas_is_not_ready():
    empty_state = simulator_state(
        engine=EngineState(), target_replicas=0, serving=serving(replicas=0)
    )
    assert conditions_of(served_status(empty_state, IDENTITY, NOW))["Ready"] == (
        "False",
        "ScaledToZero",
    )


def test_a_suspended_simulator_is_not_ready():
    suspended_state = simulator_state(
        engine=EngineState(), target_replicas=0, serving=serving(suspend=True)
    )
    assert conditions_of(served_status(suspended_state, IDENTITY, NOW))["Ready"] == (
        "False",
        "Suspended",
    )


def test_weights_stay_verified_after_their_engine_is_scaled_to_zero():
    before = served_status(simulator_state(), IDENTITY, EARLIER)
    idle_state = simulator_state(
        status=before, engine=EngineState(), target_replicas=0, serving=serving(bounds=Bounds())
    )
    assert conditions_of(served_status(idle_state, IDENTITY, NOW))["Verified"] == (
        "True",
        "FilesMatch",
    )


def test_weights_of_a_new_digest_are_not_verified():
    before = served_status(simulator_state(), IDENTITY, EARLIER)
    other_status = before.model_copy(update={"digest": records.digest("another")})
    status = served_status(
        simulator_state(status=other_status, engine=EngineState(1, 0)), IDENTITY, NOW
    )
    assert conditions_of(status)["Verified"] == ("Unknown", "NotYet")


def test_an_endpoint_is_ready_and_never_verified():
    endpoint = Endpoint(url="http://models.example/v1", model="world")
    manifest = records.manifest(engine=endpoint, artifact=None, files={})
    conditions = conditions_of(
        served_status(
            simulator_state(engine=EngineState()), SimulatorIdentity(manifest.digest, manifest), NOW
        )
    )
    assert conditions["Verified"] == ("Unknown", "Endpoint")
    assert conditions["Ready"] == ("True", "Endpoint")


def test_an_unchanged_state_yields_an_equal_status():
    before = served_status(simulator_state(), IDENTITY, EARLIER)
    assert served_status(simulator_state(status=before), IDENTITY, NOW) == before


def test_a_condition_keeps_its_time_until_its_status_changes():
    before = served_status(simulator_state(engine=EngineState(1, 0)), IDENTITY, EARLIER)
    after = served_status(
        simulator_state(status=before, engine=EngineState(1, 1, True)), IDENTITY, NOW
    )
    times = {condition.type: condition.last_transition_time for condition in after.conditions}
    assert times == {"Verified": NOW, "EngineReady": NOW, "Ready": NOW, "Degraded": EARLIER}


def test_an_unknown_episode_count_keeps_the_last_count():
    before = served_status(simulator_state(open_episodes=7), IDENTITY, EARLIER)
    assert (
        served_status(
            simulator_state(status=before, open_episodes=None), IDENTITY, NOW
        ).open_episodes
        == 7
    )


def test_the_status_has_a_pod_selector_for_the_scale_subresource():
    assert "agentworld.dev/simulator=" in served_status(simulator_state(), IDENTITY, NOW).selector


def test_a_refused_simulator_reports_the_reason_and_its_digest():
    status = refused_status(
        4, SimulatorStatus(), MANIFEST.digest, Problem("NoImage", "pin it"), NOW
    )
    assert conditions_of(status)["Ready"] == ("False", "NoImage")
    assert status.digest == MANIFEST.digest
    assert {condition.observed_generation for condition in status.conditions} == {4}


@pytest.mark.parametrize(
    ("status", "reason"), [(403, "Forbidden"), (422, "Invalid"), (404, "Refused"), (500, "Refused")]
)
def test_a_refusal_of_the_api_server_is_reported_with_its_message(status, reason):
    refusal = refusal_of(ClusterError("PATCH /x: exceeded quota", status=status))
    assert refusal == Problem(reason, "PATCH /x: exceeded quota")
    conditions = conditions_of(
        served_status(simulator_state(engine=EngineState(), refusal=refusal), IDENTITY, NOW)
    )
    assert {conditions[name] for name in ("EngineReady", "Ready")} == {("False", reason)}
    assert conditions["Degraded"] == ("True", reason)


@pytest.mark.parametrize("status", [0, 409, 429, 503, 504])
def test_a_temporary_failure_of_the_api_server_is_no_refusal(status):
    assert refusal_of(ClusterError("later", status=status)) is None


def test_a_refused_change_degrades_a_simulator_and_keeps_its_ready_condition():
    refusal = Problem("Forbidden", "cannot patch")
    stopped_state = simulator_state(
        target_replicas=0, serving=serving(suspend=True), refusal=refusal
    )
    conditions = conditions_of(served_status(stopped_state, IDENTITY, NOW))
    assert (conditions["Ready"], conditions["Degraded"]) == (
        ("False", "Suspended"),
        ("True", "Forbidden"),
    )
    conditions = conditions_of(served_status(simulator_state(refusal=refusal), IDENTITY, NOW))
    assert (conditions["Ready"], conditions["Degraded"]) == (
        ("True", "Serving"),
        ("True", "Forbidden"),
    )
