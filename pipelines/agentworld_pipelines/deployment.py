"""How a cluster serves what passed its gate, as the placement says it and the step is told it."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from agentworld.cluster.records.serving import Bounds, NodePool, Serving, Tolerations, Weights
from agentworld.cluster.terms import LabelKey, LabelValue, MountPath, ObjectName
from agentworld.errors import InputError
from agentworld.records.base import Label, Record, first_problem
from agentworld_pipelines.compute import Accelerator, CpuMemory, container_resources


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
    cache: ObjectName | None = None
    """A claim that keeps what was fetched from the bucket, for all engines that mount it."""
    node_selector: dict[LabelKey, LabelValue] = {}
    tolerations: Tolerations = ()
    accelerator: Accelerator | None = None
    """Of each replica."""
    requests: CpuMemory = CpuMemory()
    limits: CpuMemory = CpuMemory()
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
        if self.claim and self.cache:
            raise ValueError(
                "claim and cache are both given; leave one, for nothing is fetched from a claim"
            )
        return self

    def serving_of(self, weights: Weights) -> Serving:
        """How a Simulator of these weights is served; what is null or not set it leaves alone."""
        size = {"bounds": self.bounds} if self.bounds else {"replicas": self.replicas}
        return Serving(
            image=self.image,
            weights=weights,
            node_pool=NodePool(selector=self.node_selector, tolerations=self.tolerations),
            resources=container_resources(self.requests, self.limits, self.accelerator),
            tenants=self.tenants,
            startup_seconds=self.startup_seconds,
            queue=self.queue,
            **size,
        )

    def check_mounted(self, volumes: Mapping[str, str]) -> None:
        """Raises ValueError where the step has not mounted the claim of the weights."""
        if self.claim and self.claim not in volumes:
            mounted = ", ".join(volumes) or "none"
            raise ValueError(
                f"deploy.claim is {self.claim} and the step deploy has {mounted} among its volumes;"
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
