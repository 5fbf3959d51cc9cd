"""A TrainingSchedule: a pipeline that is started again and again, one run at a time."""

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
    """What is wanted."""

    model_config = with_checks(_FIVE_FIELDS, _FOR_EVERY_POD)

    pipeline: ShortText
    """Which one: `world_model`, `agent` or `nightly`."""
    recipe: ShortText
    """A shipped recipe's name, or a file as every pod reaches it: by its whole path, or a URL in
    the store's bucket."""
    store: ShortText
    """That all steps share: a folder as their placement mounts it, or a bucket's by its URL."""
    simulator: ShortText | None = None
    """By alias or digest, for a pipeline that takes one; else it is the recipe's."""
    cron: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """When it starts, in UTC: minute, hour, day of the month, month, day of the week."""
    queue: Label | None = None
    """A LocalQueue of Kueue, for the steps for which the placement names none of their own."""
    suspend: bool = False
    """No run is started; one that is under way comes to its end."""

    @model_validator(mode="after")
    def _is_for_every_pod(self) -> Self:
        if not (self.store.startswith("/") or "://" in self.store):
            raise ValueError(_FOR_EVERY_POD.message)
        return self


class LastRun(Part):
    """The newest run that was started."""

    id: ShortText
    """Kubeflow's."""
    state: ShortText
    """Kubeflow's: PENDING, RUNNING, SUCCEEDED, FAILED and so on."""
    started: Timestamp
    finished: Timestamp | None = None
    failure: LongText | None = None
    """What Kubeflow says of one that failed."""


class ScheduleStatus(Part):
    """What is so."""

    observed_generation: int = 0
    """Of the spec that this was said of."""
    recurring_run: ShortText | None = None
    """The id of the one that Kubeflow starts runs by."""
    last_run: LastRun | None = None
    """The newest run, as Kubeflow told of it last."""
    next_run: Timestamp | None = None
    """When the next run is due, in UTC."""
    conditions: Conditions = ()
    """Scheduled and Degraded."""

    def condition(self, type_: str) -> Condition | None:
        """What is said of one thing, if anything."""
        return next((condition for condition in self.conditions if condition.type == type_), None)
