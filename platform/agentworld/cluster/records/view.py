"""The fields of a cluster's objects that other programs than the operator read.

The records are strict about a user's input. A view ignores all other fields: during an upgrade, an
older service reads objects with newer fields. The manifest is read strictly here as well, because
all its fields count in its digest.
"""

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from agentworld.cluster.api_resources import Object
from agentworld.errors import Conflict
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import SimulatorManifest


class View(BaseModel):
    """A part of an object."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class MetadataView(View):
    """The fields of an object's metadata that other programs read."""

    name: str = ""
    uid: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class ReferenceView(View):
    """Of `Reference`."""

    url: str


class IdentityView(View):
    """Of `Identity`."""

    manifest: SimulatorManifest | None = None
    reference: ReferenceView | None = None


class ServingView(View):
    """Of `Serving`."""

    tenants: tuple[str, ...] = ()


class SimulatorSpecView(View):
    """Of `SimulatorSpec`."""

    identity: IdentityView
    serving: ServingView = ServingView()


class ConditionView(View):
    """Of `Condition`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


class SimulatorStatusView(View):
    """Of `SimulatorStatus`."""

    observed_generation: int = 0
    digest: Digest | None = None
    accelerators: tuple[str, ...] = ()
    conditions: tuple[ConditionView, ...] = ()


class SimulatorView(View):
    """A Simulator."""

    metadata: MetadataView
    spec: SimulatorSpecView
    status: SimulatorStatusView = SimulatorStatusView()

    @property
    def is_terminating(self) -> bool:
        """Whether it was deleted and waits for finalizers."""
        return self.metadata.deletion_timestamp is not None

    @property
    def refusal(self) -> str | None:
        """Why the operator refused it; another object of its digest may be served instead."""
        for condition in self.status.conditions:
            if (condition.type, condition.status) == ("Verified", "False"):
                return condition.message or condition.reason or "the operator does not say why"
        return None

    def admits(self, tenant: str) -> bool:
        """Whether a tenant may open runs with it."""
        tenants = self.spec.serving.tenants
        return not tenants or tenant in tenants


_View = TypeVar("_View", bound=View)


def parse_object(view: type[_View], fields: Object) -> _View:
    """Parses an object; raises Conflict with the first wrong field."""
    try:
        return view.model_validate(fields)
    except ValidationError as error:
        name = fields.get("metadata", {}).get("name")
        raise Conflict(f"{name} in the cluster is wrong at {first_problem(error)}") from error


def of_digest(objects: Iterable[Object], simulator: Digest) -> SimulatorView | None:
    """The object of this simulator.

    If there are several, the one that is served: the oldest that the operator did not refuse.
    """
    candidates = [
        parse_object(SimulatorView, resource)
        for resource in objects
        if (resource.get("status") or {}).get("digest") == simulator
    ]
    return min(
        (candidate for candidate in candidates if not candidate.is_terminating),
        key=_precedence,
        default=None,
    )


def _precedence(simulator: SimulatorView) -> tuple[bool, str, str]:
    metadata = simulator.metadata
    return simulator.refusal is not None, metadata.creation_timestamp, metadata.uid
