"""How a cluster serves what passed its gate, as the placement says it and the step is told it."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from agentworld.errors import InputError
from agentworld.records.base import Label, Record, first_problem
from agentworld_pipelines.terms import (
    Accelerator,
    LabelKey,
    LabelValue,
    MountPath,
    ObjectName,
    Resources,
    Toleration,
)


class Bounds(Record):
    """How many replicas there may be where open episodes decide."""

    min: int = Field(0, ge=0)
    """0 lets the engine go while no episode is open."""
    max: int = Field(1, ge=1)
    episodes_per_replica: int = Field(32, ge=1)
    idle_seconds: int = Field(300, ge=0)
    """Replicas go only after fewer were enough for so long."""

    @model_validator(mode="after")
    def _are_ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError("min is more than max: raise max, or lower min")
        return self


class Deployment(Record):
    """Of each simulator that a pipeline deploys on one cluster."""

    namespace: Label | None = None
    """Where an operator looks after Simulators; null is the step's own."""
    image: Annotated[str, StringConstraints(pattern=r"^([^\s@]+/)?[^\s@/:]+$")]
    """The engine's, without a tag; its digest is the manifest's."""
    claim: ObjectName | None = None
    """That holds the store. The step `deploy` has it mounted; engines mount it read-only. Null is
    for a store in a bucket, from which each engine's pod fetches its weights."""
    secret: ObjectName | None = None
    """Whose entries are the environment variables that the bucket asks for, in the namespace of
    the Simulators."""
    node_selector: dict[LabelKey, LabelValue] = {}
    tolerations: tuple[Toleration, ...] = ()
    accelerator: Accelerator | None = None
    """Of each replica."""
    requests: Resources = Resources()
    limits: Resources = Resources()
    queue: Label | None = None
    """A LocalQueue of Kueue, which admits the engine's pods."""
    replicas: int = Field(1, ge=1)
    """Of the engine, where no bounds are given."""
    bounds: Bounds | None = None
    """Open episodes decide how many replicas there are, and `replicas` does not."""
    tenants: tuple[Label, ...] = ()
    """Who may open runs with it; empty lets everybody."""
    startup_seconds: int = Field(900, ge=10)
    """How long a replica may take to load its weights and be ready."""
    ready_seconds: int = Field(1800, ge=1)
    """How long the step waits for all of it; a queue for devices counts."""

    @model_validator(mode="after")
    def _is_clear(self) -> Self:
        if len(set(self.tenants)) < len(self.tenants):
            raise ValueError("tenants names one twice; leave one")
        if self.claim and self.secret:
            raise ValueError(
                "claim and secret are both given; leave one, for a claim asks for none"
            )
        return self

    def check_mounted(self, volumes: Mapping[str, str]) -> None:
        """Raises ValueError where the step has not mounted the claim of the weights."""
        if self.claim and self.claim not in volumes:
            there = ", ".join(volumes) or "none"
            raise ValueError(
                f"deploy.claim is {self.claim} and the step deploy has {there} among its volumes;"
                " add it there, for the store is on it"
            )

    def to_target_json(self, volumes: Mapping[str, str]) -> str:
        """What the step is told, as JSON."""
        mounted = volumes[self.claim] if self.claim else None
        return Target(deployment=self, mounted=mounted).model_dump_json()


class Target(Record):
    """A deployment, and where the step has mounted its claim."""

    deployment: Deployment
    mounted: MountPath | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """What a pipeline was compiled with; raises InputError."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InputError(
                f"the step was told a wrong target at {first_problem(error)}; compile the pipeline"
                " anew"
            ) from error
