"""Decides the status of a Simulator."""

from typing import NamedTuple

from agentworld.cluster.names import engine_labels
from agentworld.cluster.records.serving import Serving
from agentworld.cluster.records.simulator import SimulatorStatus
from agentworld.engine.accelerators import UNKNOWN
from agentworld.errors import ClusterError
from agentworld.records.base import Digest
from agentworld.records.simulator import Endpoint
from agentworld_operator.policy.accelerators import describe
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.policy.engine import MOST_CHARACTERS, EngineState
from agentworld_operator.policy.identity import SimulatorIdentity
from agentworld_operator.policy.problem import Problem

_PASSING = (0, 409, 429, 503, 504)
"""HTTP statuses of an unreachable or busy API server, or of a conflicting write."""
_REASONS = {403: "Forbidden", 422: "Invalid"}


class SimulatorState(NamedTuple):
    """Everything that the status depends on."""

    generation: int
    serving: Serving
    status: SimulatorStatus
    """The last reported status."""
    engine: EngineState
    target_replicas: int
    """The desired number of replicas."""
    open_episodes: int | None
    """The number of open episodes; null if the service cannot say."""
    url: str
    """The service's address."""
    refusal: Problem | None = None
    """Why the API server refused the engine's objects; null if it did not."""
    kept_queue: Problem | None = None
    """Why the engine is in another queue than the requested one."""

    @property
    def problem(self) -> Problem | None:
        """Why the engine is not in its desired state: a refusal, or a problem of its replicas."""
        return self.refusal or (self.engine.problem if self.target_replicas else None)


def refusal_of(error: ClusterError) -> Problem | None:
    """The problem of a refused child; null for a temporary failure."""
    if error.status in _PASSING:
        return None
    return Problem(_REASONS.get(error.status, "Refused"), str(error)[:MOST_CHARACTERS])


def refused_status(
    generation: int, before: SimulatorStatus, digest: Digest | None, refusal: Problem, now: str
) -> SimulatorStatus:
    """The status of a Simulator that is not served."""
    states = [
        ConditionState("Verified", "False", *refusal),
        ConditionState("EngineReady", "False", "NotServed"),
        ConditionState("Ready", "False", *refusal),
        ConditionState("Degraded", "True", *refusal),
    ]
    return SimulatorStatus(
        observed_generation=generation,
        digest=digest,
        conditions=conditions(before.conditions, states, generation, now),
    )


def served_status(state: SimulatorState, identity: SimulatorIdentity, now: str) -> SimulatorStatus:
    """The status of a Simulator that is served; equal to the last one if nothing changed."""
    is_endpoint = isinstance(identity.manifest.engine, Endpoint)
    verified = _endpoint_verified() if is_endpoint else _verified_condition(state, identity)
    engine = (
        ConditionState("EngineReady", "True", "Endpoint") if is_endpoint else _engine_ready(state)
    )
    states = [verified, engine, _ready(state, verified, engine), _degraded_condition(state)]
    labels = engine_labels(identity.digest)
    episodes = state.status.open_episodes if state.open_episodes is None else state.open_episodes
    return SimulatorStatus(
        observed_generation=state.generation,
        digest=identity.digest,
        replicas=state.engine.replicas,
        ready_replicas=state.engine.ready,
        selector=",".join(f"{name}={value}" for name, value in labels.items()),
        url=state.url,
        open_episodes=episodes,
        accelerators=UNKNOWN if is_endpoint else _accelerators(state),
        conditions=conditions(state.status.conditions, states, state.generation, now),
    )


def _accelerators(state: SimulatorState) -> tuple[str, ...]:
    """The accelerators of the replicas, or of the next one if there is none."""
    serving = state.serving
    description = describe(serving.resources.limits, serving.node_pool.selector)
    return state.engine.accelerators or (description,)


def _endpoint_verified() -> ConditionState:
    message = "what a third-party endpoint serves cannot be verified"
    return ConditionState("Verified", "Unknown", "Endpoint", message)


def _verified_condition(state: SimulatorState, identity: SimulatorIdentity) -> ConditionState:
    problem = state.engine.problem
    if problem and problem.reason == "VerificationFailed":
        return ConditionState("Verified", "False", *problem)
    before = state.status.condition("Verified")
    was_verified = before and before.status == "True" and state.status.digest == identity.digest
    if state.engine.verified or was_verified:
        return ConditionState(
            "Verified", "True", "FilesMatch", "the weights are those of the manifest"
        )
    return ConditionState("Verified", "Unknown", "NotYet", "no replica has checked the weights yet")


def _engine_ready(state: SimulatorState) -> ConditionState:
    ready, target, problem = state.engine.ready, state.target_replicas, state.problem
    if target == 0:
        reason = "Suspended" if state.serving.suspend else "ScaledToZero"
        return ConditionState("EngineReady", "False", reason)
    if ready:
        return ConditionState(
            "EngineReady", "True", "Serving", f"{ready} of {target} replicas are ready"
        )
    if problem:
        return ConditionState("EngineReady", "False", *problem)
    return ConditionState(
        "EngineReady", "False", "Starting", f"none of {target} replicas is ready yet"
    )


def _ready(
    state: SimulatorState, verified: ConditionState, engine: ConditionState
) -> ConditionState:
    """Whether a run that is opened now will get answers."""
    if verified.status == "False":
        return ConditionState("Ready", "False", verified.reason, verified.message)
    if engine.status == "True":
        return ConditionState("Ready", "True", engine.reason, engine.message)
    if engine.reason == "ScaledToZero" and state.serving.bounds:
        return ConditionState("Ready", "True", "Idle", "an engine starts with the first episode")
    return ConditionState("Ready", "False", engine.reason, engine.message)


def _degraded_condition(state: SimulatorState) -> ConditionState:
    if problem := state.problem or state.kept_queue:
        return ConditionState("Degraded", "True", *problem)
    return ConditionState("Degraded", "False", "AsWanted")
