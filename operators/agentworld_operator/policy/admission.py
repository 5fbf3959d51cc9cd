"""Parses AdmissionReviews, judges what needs no other system, and builds the responses."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from agentworld.cluster.records.alias import AliasSpec
from agentworld.cluster.records.schedule import ScheduleSpec
from agentworld.cluster.records.simulator import IMMUTABLE, SimulatorSpec
from agentworld.errors import InputError
from agentworld.records.base import Digest, first_problem
from agentworld.records.statements.alias import SimulatorUse
from agentworld_operator.policy.alias import request_of
from agentworld_operator.policy.rivals import RIVAL
from agentworld_operator.policy.schedule import invalid, recurring_run_name

API_VERSION = "admission.k8s.io/v1"
Object = Mapping[str, Any]

_MOST_NAMES = 5


class Denial(NamedTuple):
    """The reason of a refusal, and what to do."""

    message: str
    code: int = 403
    """The HTTP status for the client."""


class _Kind(BaseModel):
    kind: str


class _User(BaseModel):
    username: str = ""


class _Meta(BaseModel, extra="allow"):
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    status: dict[str, Any] | None = None


class AdmissionRequest(BaseModel):
    """An admission request of the API server."""

    uid: str = Field(min_length=1, max_length=64)
    kind: _Kind
    namespace: str
    name: str = ""
    operation: str
    user_info: _User = Field(_User(), alias="userInfo")
    dry_run: bool | None = Field(None, alias="dryRun")
    object: _Meta | None = None
    old: _Meta | None = Field(None, alias="oldObject")

    @property
    def object_name(self) -> str:
        """The object's name, even before the API server has generated it."""
        resource = self.object or self.old
        name: str = self.name or (resource.metadata.get("name", "") if resource else "")
        return name

    @property
    def object_request(self) -> str:
        """The id of the requested or deleted spec, whose generation the API server has counted."""
        resource = self.object or self.old
        assert resource
        return request_of({"metadata": resource.metadata})

    @property
    def is_spec_changed(self) -> bool:
        """Whether the spec changes; an unchanged spec was admitted before."""
        assert self.object
        return self.old is None or self.object.spec != self.old.spec


class _Review(BaseModel):
    api_version: str = Field(alias="apiVersion", pattern=f"^{API_VERSION}$")
    kind: str = Field(pattern="^AdmissionReview$")
    request: AdmissionRequest


def read_review(review: object) -> AdmissionRequest:
    """Raises InputError for an invalid review."""
    try:
        request = _Review.model_validate(review).request
    except ValidationError as error:
        raise InputError(f"this is not an AdmissionReview: {first_problem(error)}") from error
    subject = request.old if request.operation == "DELETE" else request.object
    if subject is None or (request.operation == "UPDATE" and request.old is None):
        raise InputError(f"this {request.operation} has no object")
    return request


def answer(uid: str, denial: Denial | None) -> dict[str, Any]:
    """The review with the decision."""
    response: dict[str, Any] = {"uid": uid, "allowed": denial is None}
    if denial:
        response["status"] = {"code": denial.code, "message": denial.message}
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def check_simulator(request: AdmissionRequest) -> Denial | None:
    """Checks a created or changed Simulator."""
    assert request.object
    if request.old and request.object.spec.get("identity") != request.old.spec.get("identity"):
        return Denial(f"spec.identity: {IMMUTABLE.message}", 422)
    if not request.is_spec_changed:
        return None
    try:
        SimulatorSpec.model_validate(request.object.spec)
    except ValidationError as error:
        return Denial(f"spec.{first_problem(error)}", 422)
    return None


def check_schedule(request: AdmissionRequest) -> Denial | None:
    """Checks a created or changed TrainingSchedule by the rules that CEL cannot compute, such as
    the values of `cron`, and the length of its name with its namespace.
    """
    assert request.object
    if not request.is_spec_changed:
        return None
    try:
        spec = ScheduleSpec.model_validate(request.object.spec)
    except ValidationError as error:
        return Denial(f"spec.{first_problem(error)}", 422)
    name = recurring_run_name(request.namespace, request.object_name)
    problem = invalid(name, spec)
    return Denial(problem.message, 422) if problem else None


def spec_of_alias(request: AdmissionRequest) -> AliasSpec | Denial:
    """The spec of a created or changed SimulatorAlias."""
    assert request.object
    try:
        return AliasSpec.model_validate(request.object.spec)
    except ValidationError as error:
        return Denial(f"spec.{first_problem(error)}", 422)


def digest_in_use(simulator: Object) -> Digest | None:
    """The digest that a Simulator's deletion would remove; null if another Simulator serves it, or
    the operator has not reconciled it yet.
    """
    status = simulator.get("status") or {}
    reasons = {condition.get("reason") for condition in status.get("conditions", ())}
    digest: Digest | None = status.get("digest")
    return None if RIVAL in reasons else digest


def check_deletion(simulator: str, use: SimulatorUse) -> Denial | None:
    """Checks the deletion of a Simulator against its use in the ledger.

    It protects open runs and aliases. Weights and history are protected by retention.
    """
    if use.aliases:
        listing = ", ".join(use.aliases[:_MOST_NAMES]) + (
            " and others" if use.aliases[_MOST_NAMES:] else ""
        )
        return Denial(f"{simulator} is what {listing} means; move or delete that alias first", 409)
    if use.open_runs:
        return Denial(
            f"{simulator} has open runs ({use.open_runs}); close them first, or let its engine go"
            " with spec.serving.suspend",
            409,
        )
    return None
