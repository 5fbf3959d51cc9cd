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

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
MANIFEST = pinned_manifest()
IDENTITY = SimulatorIdentity(MANIFEST.digest, MANIFEST)
READY = EngineState(replicas=1, ready=1, verified=True)


def seen(**fields):
    known = {
        "generation": 3,
        "serving": serving(),
        "status": SimulatorStatus(),
        "engine": READY,
        "target_replicas": 1,
        "open_episodes": 0,
        "url": "http://simulators",
    }
    return SimulatorState(**known | fields)


def told(status):
    return {each.type: (each.status, each.reason) for each in status.conditions}


def test_what_the_replicas_compute_on_is_told_or_what_the_next_one_will():
    pool = {"selector": {"pool": "h100"}}
    placed = serving(resources={"limits": {"nvidia.com/gpu": 1}}, nodePool=pool)
    found = served_status(seen(serving=placed, engine=EngineState()), IDENTITY, NOW)
    assert found.accelerators == ("1 x nvidia.com/gpu on pool=h100",)
    running = READY._replace(accelerators=("cpu",))
    assert served_status(seen(serving=placed, engine=running), IDENTITY, NOW).accelerators == (
        "cpu",
    )


def test_of_an_endpoint_nobody_knows_what_it_computes_on():
    there = Endpoint(url="http://models.example/v1", model="world")
    manifest = records.manifest(engine=there, artifact=None, files={})
    found = served_status(seen(), SimulatorIdentity(manifest.digest, manifest), NOW)
    assert found.accelerators == ("unknown",)


def test_what_somebody_said_at_length_is_cut_where_a_condition_ends():
    refusal = Problem("Refused", "no " * 20_000)
    status = refused_status(1, SimulatorStatus(), None, refusal, NOW)
    assert {len(each.message) for each in status.conditions} == {0, 32_768}


def test_a_verified_and_ready_engine_makes_it_ready():
    assert told(served_status(seen(), IDENTITY, NOW)) == {
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
def test_what_an_engine_is_in_decides(engine, ready, degraded):
    found = told(served_status(seen(engine=engine, target_replicas=2), IDENTITY, NOW))
    assert (found["Ready"], found["Degraded"]) == (ready, degraded)


def test_scaled_to_zero_it_is_ready_for_the_first_episode():
    idle = seen(engine=EngineState(), target_replicas=0, serving=serving(bounds=Bounds()))
    found = told(served_status(idle, IDENTITY, NOW))
    assert found["EngineReady"] == ("False", "ScaledToZero")
    assert found["Ready"] == ("True", "Idle")


def test_without_replicas_that_somebody_wants_it_is_not():
    none = seen(engine=EngineState(), target_replicas=0, serving=serving(replicas=0))
    assert told(served_status(none, IDENTITY, NOW))["Ready"] == ("False", "ScaledToZero")


def test_suspended_it_is_not_ready():
    suspended = seen(engine=EngineState(), target_replicas=0, serving=serving(suspend=True))
    assert told(served_status(suspended, IDENTITY, NOW))["Ready"] == ("False", "Suspended")


def test_weights_that_were_verified_stay_so_when_their_engine_is_gone():
    before = served_status(seen(), IDENTITY, THEN)
    gone = seen(
        status=before, engine=EngineState(), target_replicas=0, serving=serving(bounds=Bounds())
    )
    assert told(served_status(gone, IDENTITY, NOW))["Verified"] == ("True", "FilesMatch")


def test_weights_of_another_digest_were_not():
    before = served_status(seen(), IDENTITY, THEN)
    other = before.model_copy(update={"digest": records.digest("another")})
    found = served_status(seen(status=other, engine=EngineState(1, 0)), IDENTITY, NOW)
    assert told(found)["Verified"] == ("Unknown", "NotYet")


def test_what_an_endpoint_serves_is_never_called_verified():
    endpoint = Endpoint(url="http://models.example/v1", model="world")
    manifest = records.manifest(engine=endpoint, artifact=None, files={})
    found = told(
        served_status(seen(engine=EngineState()), SimulatorIdentity(manifest.digest, manifest), NOW)
    )
    assert found["Verified"] == ("Unknown", "Endpoint")
    assert found["Ready"] == ("True", "Endpoint")


def test_an_equal_status_is_the_same_and_nothing_is_written():
    before = served_status(seen(), IDENTITY, THEN)
    assert served_status(seen(status=before), IDENTITY, NOW) == before


def test_a_condition_keeps_its_time_until_its_status_changes():
    before = served_status(seen(engine=EngineState(1, 0)), IDENTITY, THEN)
    after = served_status(seen(status=before, engine=EngineState(1, 1, True)), IDENTITY, NOW)
    times = {each.type: each.last_transition_time for each in after.conditions}
    assert times == {"Verified": NOW, "EngineReady": NOW, "Ready": NOW, "Degraded": THEN}


def test_where_the_service_does_not_tell_the_last_number_stays():
    before = served_status(seen(open_episodes=7), IDENTITY, THEN)
    assert served_status(seen(status=before, open_episodes=None), IDENTITY, NOW).open_episodes == 7


def test_its_selector_finds_its_pods_for_the_scale_subresource():
    assert "agentworld.dev/simulator=" in served_status(seen(), IDENTITY, NOW).selector


def test_one_that_is_refused_says_why_and_what_it_would_be():
    status = refused_status(
        4, SimulatorStatus(), MANIFEST.digest, Problem("NoImage", "pin it"), NOW
    )
    assert told(status)["Ready"] == ("False", "NoImage")
    assert status.digest == MANIFEST.digest
    assert {each.observed_generation for each in status.conditions} == {4}


@pytest.mark.parametrize(
    ("status", "reason"), [(403, "Forbidden"), (422, "Invalid"), (404, "Refused"), (500, "Refused")]
)
def test_what_an_api_server_refuses_is_told_in_its_words(status, reason):
    refusal = refusal_of(ClusterError("PATCH /x: exceeded quota", status=status))
    assert refusal == Problem(reason, "PATCH /x: exceeded quota")
    found = told(served_status(seen(engine=EngineState(), refusal=refusal), IDENTITY, NOW))
    assert {found[name] for name in ("EngineReady", "Ready")} == {("False", reason)}
    assert found["Degraded"] == ("True", reason)


@pytest.mark.parametrize("status", [0, 409, 429, 503, 504])
def test_an_api_server_that_is_gone_or_busy_is_asked_again_and_not_told(status):
    assert refusal_of(ClusterError("later", status=status)) is None


def test_an_engine_that_may_not_be_stopped_is_degraded_and_one_that_serves_is_ready():
    refusal = Problem("Forbidden", "cannot patch")
    stopped = seen(target_replicas=0, serving=serving(suspend=True), refusal=refusal)
    found = told(served_status(stopped, IDENTITY, NOW))
    assert (found["Ready"], found["Degraded"]) == (("False", "Suspended"), ("True", "Forbidden"))
    found = told(served_status(seen(refusal=refusal), IDENTITY, NOW))
    assert (found["Ready"], found["Degraded"]) == (("True", "Serving"), ("True", "Forbidden"))
