"""What the objects of a cluster say of a simulator: which it is, and who opens runs with it. Pure.

The operator owns their form (`agentworld_operator.resources`); of it only what a service needs is
read here, and whatever else is there is let be.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from agentworld.errors import AccessError, ClusterError, Conflict
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import SimulatorManifest

Object = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Metadata(_Part):
    name: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class _Reference(_Part):
    url: str


class _Identity(_Part):
    manifest: SimulatorManifest | None = None
    reference: _Reference | None = None


class _Serving(_Part):
    tenants: tuple[str, ...] = ()


class _SimulatorSpec(_Part):
    identity: _Identity
    serving: _Serving = _Serving()


class _Condition(_Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _SimulatorStatus(_Part):
    digest: Digest | None = None
    accelerators: tuple[str, ...] = ()
    conditions: tuple[_Condition, ...] = ()


class SimulatorObject(_Part):
    """A Simulator."""

    metadata: _Metadata
    spec: _SimulatorSpec
    status: _SimulatorStatus = _SimulatorStatus()

    @property
    def is_going(self) -> bool:
        """It was deleted, and waits for something."""
        return self.metadata.deletion_timestamp is not None

    @property
    def refusal(self) -> str | None:
        """Why the operator does not serve it; another one of its digest may be served instead."""
        for each in self.status.conditions:
            if (each.type, each.status) == ("Verified", "False"):
                return each.message or each.reason or "the operator does not say why"
        return None

    def admits(self, tenant: str) -> bool:
        """Whether a tenant may open runs with it."""
        tenants = self.spec.serving.tenants
        return not tenants or tenant in tenants


class _Canary(_Part):
    simulator: str
    percent: int


class _AliasSpec(_Part):
    simulator: str
    canary: _Canary | None = None


class SimulatorAlias(_Part):
    """A name for one, or for two of which one is tried."""

    spec: _AliasSpec


_Kind = TypeVar("_Kind", bound=BaseModel)


def parse_object(kind: type[_Kind], fields: Object) -> _Kind:
    """Raises Conflict naming the first thing that is wrong."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        name = fields.get("metadata", {}).get("name")
        raise Conflict(f"{name} in the cluster is wrong at {first_problem(error)}") from error


def of_digest(objects: Iterable[Object], simulator: Digest) -> SimulatorObject | None:
    """The object that is this simulator.

    Of several the one that is served, which is the oldest that the operator did not refuse.
    """
    candidates = [
        parse_object(SimulatorObject, each)
        for each in objects
        if (each.get("status") or {}).get("digest") == simulator
    ]
    return min((each for each in candidates if not each.is_going), key=_precedence, default=None)


def check_opens(simulator: SimulatorObject, tenant: str) -> Digest:
    """The digest that a run of this tenant is opened with.

    Raises AccessError where the tenant may not, Conflict where nobody may, and ClusterError, for a
    later try, where the operator has not said yet.
    """
    name = simulator.metadata.name
    if not simulator.admits(tenant):
        raise AccessError(
            f"tenant {tenant} may open no run with Simulator {name}; have {tenant} added to its"
            " spec.serving.tenants, or name another simulator",
            kind="forbidden",
        )
    if simulator.refusal:
        raise Conflict(f"Simulator {name} is not served: {simulator.refusal}")
    if simulator.status.digest is None:
        raise ClusterError(f"the operator has not looked at Simulator {name} yet; try again")
    return simulator.status.digest


def _precedence(simulator: SimulatorObject) -> tuple[bool, str, str]:
    metadata = simulator.metadata
    return simulator.refusal is not None, metadata.creation_timestamp, metadata.uid
