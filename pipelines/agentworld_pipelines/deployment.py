"""A placement's settings for serving simulators on a cluster, and their form for the step."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from agentworld.cluster.records.serving import Bounds, NodePool, Serving, Tolerations, Weights
from agentworld.cluster.terms import LabelKey, LabelValue, MountPath, ObjectName
from agentworld.errors import InputError
from agentworld.records.base import Label, Record, first_problem
from agentworld_pipelines.compute import Accelerator, CpuMemory, container_resources


class Deployment(Record):
    """How simulators that pipelines deploy are served on one cluster."""

    namespace: Label | None = None
    """The namespace with an operator for Simulators; null is the step's own."""
    image: Annotated[str, StringConstraints(pattern=r"^([^\s@]+/)?[^\s@/:]+$")]
    """The engine's image, without a tag; its digest is the manifest's."""
    claim: ObjectName | None = None
    """The volume claim with the store.

    The step `deploy` mounts it; engines mount it read-only. Null is for a store in a bucket, from
    which each engine's pod downloads its weights.
    """
    secret: ObjectName | None = None
    """The Secret with the bucket's environment variables, in the namespace of the Simulators."""
    cache: ObjectName | None = None
    """A claim that caches downloads from the bucket, for all engines that mount it."""
    node_selector: dict[LabelKey, LabelValue] = {}
    tolerations: Tolerations = ()
    accelerator: Accelerator | None = None
    """The devices of each replica."""
    requests: CpuMemory = CpuMemory()
    limits: CpuMemory = CpuMemory()
    queue: Label | None = None
    """A LocalQueue of Kueue for the engine's pods."""
    replicas: int = Field(1, ge=1)
    """The number of replicas, without autoscaling."""
    bounds: Bounds | None = None
    """Autoscaling by open episodes, instead of `replicas`."""
    tenants: tuple[Label, ...] = ()
    """Tenants that may open runs with it; empty allows all."""
    startup_seconds: int = Field(900, ge=10)
    """How long a replica may take to load its weights and become ready."""
    ready_seconds: int = Field(1800, ge=1)
    """How long the step waits for the whole rollout, including a queue for devices."""

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
        """The serving part of a Simulator with these weights; unset fields are left out."""
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
        """Raises ValueError if the step does not mount the claim of the weights."""
        if self.claim and self.claim not in volumes:
            mounted = ", ".join(volumes) or "none"
            raise ValueError(
                f"deploy.claim is {self.claim} and the step deploy has {mounted} among its volumes;"
                " add it there, for the store is on it"
            )

    def to_target_json(self, volumes: Mapping[str, str]) -> str:
        """The settings for the step, as JSON."""
        mounted = volumes[self.claim] if self.claim else None
        return Target(deployment=self, mounted=mounted).model_dump_json()


class Target(Record):
    """A deployment, and where the step has mounted its claim."""

    deployment: Deployment
    mounted: MountPath | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the JSON of a compiled pipeline; raises InputError."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InputError(
                f"the step has an invalid target at {first_problem(error)}; compile the pipeline"
                " again"
            ) from error
