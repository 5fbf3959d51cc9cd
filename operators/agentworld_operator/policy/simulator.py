"""What becomes of a Simulator: observed in, status out."""

from typing import NamedTuple

from agentworld.engine.accelerators import UNKNOWN
from agentworld.errors import ClusterError
from agentworld.records.base import Digest
from agentworld.records.simulator import Endpoint
from agentworld_operator.policy.accelerators import in_words
from agentworld_operator.policy.conditions import Said, conditions
from agentworld_operator.policy.engine import MOST_CHARACTERS, EngineSeen, Trouble
from agentworld_operator.policy.identity import Identified, Refused
from agentworld_operator.resources.names import engine_labels
from agentworld_operator.resources.simulator import Serving, SimulatorStatus

_PASSING = (0, 409, 429, 503, 504)
"""Statuses of an API server that is gone or busy, or of a write that another one came before."""
_REASONS = {403: "Forbidden", 422: "Invalid"}


class Seen(NamedTuple):
    """All that the answer depends on."""

    generation: int
    serving: Serving
    status: SimulatorStatus
    """As it was said last."""
    engine: EngineSeen
    wanted: int
    """Replicas of the engine."""
    open_episodes: int | None
    """Null where the service does not tell."""
    url: str
    """Of the service."""
    refusal: Trouble | None = None
    """Why the API server did not take what the engine is made of; null where it did."""

    @property
    def trouble(self) -> Trouble | None:
        """What keeps the engine from being as wanted."""
        return self.refusal or (self.engine.trouble if self.wanted else None)


def refusal_of(error: ClusterError) -> Trouble | None:
    """Why an API server does not take a child; null for what passes by itself."""
    if error.status in _PASSING:
        return None
    return Trouble(_REASONS.get(error.status, "Refused"), str(error)[:MOST_CHARACTERS])


def refused(
    generation: int, before: SimulatorStatus, digest: Digest | None, refusal: Refused, now: str
) -> SimulatorStatus:
    """The status of one that is not served."""
    said = [
        Said("Verified", "False", *refusal),
        Said("EngineReady", "False", "NotServed"),
        Said("Ready", "False", *refusal),
        Said("Degraded", "True", *refusal),
    ]
    return SimulatorStatus(
        observed_generation=generation,
        digest=digest,
        conditions=conditions(before.conditions, said, generation, now),
    )


def served(seen: Seen, identified: Identified, now: str) -> SimulatorStatus:
    """The status of one that is served; equal to the last one where nothing changed."""
    is_endpoint = isinstance(identified.manifest.engine, Endpoint)
    verified = _endpoint_verified() if is_endpoint else _verified(seen, identified)
    engine = Said("EngineReady", "True", "Endpoint") if is_endpoint else _engine_ready(seen)
    said = [verified, engine, _ready(seen, verified, engine), _degraded(seen)]
    labels = engine_labels(identified.digest)
    episodes = seen.status.open_episodes if seen.open_episodes is None else seen.open_episodes
    return SimulatorStatus(
        observed_generation=seen.generation,
        digest=identified.digest,
        replicas=seen.engine.replicas,
        ready_replicas=seen.engine.ready,
        selector=",".join(f"{name}={value}" for name, value in labels.items()),
        url=seen.url,
        open_episodes=episodes,
        accelerators=UNKNOWN if is_endpoint else _accelerators(seen),
        conditions=conditions(seen.status.conditions, said, seen.generation, now),
    )


def _accelerators(seen: Seen) -> tuple[str, ...]:
    """Of the replicas, or of the next one where none is there."""
    serving = seen.serving
    planned = in_words(serving.resources.limits, serving.node_pool.selector)
    return seen.engine.accelerators or (planned,)


def _endpoint_verified() -> Said:
    message = "what somebody's endpoint serves cannot be verified"
    return Said("Verified", "Unknown", "Endpoint", message)


def _verified(seen: Seen, identified: Identified) -> Said:
    trouble = seen.engine.trouble
    if trouble and trouble.reason == "VerificationFailed":
        return Said("Verified", "False", *trouble)
    before = seen.status.condition("Verified")
    known = before and before.status == "True" and seen.status.digest == identified.digest
    if seen.engine.verified or known:
        return Said("Verified", "True", "FilesMatch", "the weights are those of the manifest")
    return Said("Verified", "Unknown", "NotYet", "no replica has checked the weights yet")


def _engine_ready(seen: Seen) -> Said:
    ready, wanted, trouble = seen.engine.ready, seen.wanted, seen.trouble
    if wanted == 0:
        reason = "Suspended" if seen.serving.suspend else "ScaledToZero"
        return Said("EngineReady", "False", reason)
    if ready:
        return Said("EngineReady", "True", "Serving", f"{ready} of {wanted} replicas are ready")
    if trouble:
        return Said("EngineReady", "False", *trouble)
    return Said("EngineReady", "False", "Starting", f"none of {wanted} replicas is ready yet")


def _ready(seen: Seen, verified: Said, engine: Said) -> Said:
    """Whether a run that is opened now will be answered."""
    if verified.status == "False":
        return Said("Ready", "False", verified.reason, verified.message)
    if engine.status == "True":
        return Said("Ready", "True", engine.reason, engine.message)
    if engine.reason == "ScaledToZero" and seen.serving.bounds:
        return Said("Ready", "True", "Idle", "an engine starts with the first episode")
    return Said("Ready", "False", engine.reason, engine.message)


def _degraded(seen: Seen) -> Said:
    if seen.trouble:
        return Said("Degraded", "True", *seen.trouble)
    return Said("Degraded", "False", "AsWanted")
