"""A TrainingSchedule: a pipeline that is started repeatedly, one run at a time."""

from typing import Annotated, Self

from pydantic import StringConstraints, model_validator

from agentworld.cluster.records.base import (
    Check,
    Condition,
    Conditions,
    LongText,
    Part,
    ShortText,
    Timestamp,
    with_checks,
)
from agentworld.records.base import Label

_FIVE_FIELDS = Check(
    rule=r"self.cron.matches(r'^\s*\S+(\s+\S+){4}\s*$')",
    message="give five fields: minute, hour, day of the month, month, day of the week",
)
_FOR_EVERY_POD = Check(
    rule="self.store.startsWith('/') || self.store.contains('://')",
    message="name the store as every pod reaches it: a whole path, as /store, or a URL",
)


class ScheduleSpec(Part):
    """The desired state."""

    model_config = with_checks(_FIVE_FIELDS, _FOR_EVERY_POD)

    pipeline: ShortText
    """The pipeline: `world_model`, `agent` or `nightly`."""
    recipe: ShortText
    """A shipped recipe's name, or a file that every pod can read: an absolute path, or a URL in the
    store's bucket.
    """
    store: ShortText
    """The store of all steps: a folder that their placement mounts, or a URL in a bucket."""
    simulator: ShortText | None = None
    """An alias or digest, for a pipeline that uses a simulator; unset uses the recipe's."""
    cron: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """When it starts, in UTC: minute, hour, day of the month, month, day of the week."""
    queue: Label | None = None
    """A LocalQueue of Kueue for the steps that have no queue in the placement."""
    suspend: bool = False
    """Starts no further runs; an active run continues."""

    @model_validator(mode="after")
    def _is_for_every_pod(self) -> Self:
        if not (self.store.startswith("/") or "://" in self.store):
            raise ValueError(_FOR_EVERY_POD.message)
        return self


class LastRun(Part):
    """The newest run."""

    id: ShortText
    """Kubeflow's id."""
    state: ShortText
    """Kubeflow's: PENDING, RUNNING, SUCCEEDED, FAILED and so on."""
    started: Timestamp
    finished: Timestamp | None = None
    failure: LongText | None = None
    """Kubeflow's message about a failed run."""


class ScheduleStatus(Part):
    """The observed state."""

    observed_generation: int = 0
    """The generation of the spec that this status describes."""
    recurring_run: ShortText | None = None
    """The id of Kubeflow's recurring run."""
    last_run: LastRun | None = None
    """The newest run, as last read from Kubeflow."""
    next_run: Timestamp | None = None
    """The time of the next run, in UTC."""
    conditions: Conditions = ()
    """Scheduled and Degraded."""

    def condition(self, type_: str) -> Condition | None:
        """The condition of a type; null if there is none."""
        return next((condition for condition in self.conditions if condition.type == type_), None)
