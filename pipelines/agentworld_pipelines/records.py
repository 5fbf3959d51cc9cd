"""What a Kubeflow Pipelines server has of ours, in our words."""

from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints

from agentworld.records.base import Digest, Record

LONGEST_NAME = 128
"""Of a recurring run, which its server keeps in a column."""

UNFINISHED = frozenset({"RUNTIME_STATE_UNSPECIFIED", "PENDING", "RUNNING", "PAUSED", "CANCELING"})
"""The states that a run leaves; it stays in all others."""


class Version(Record):
    """A compiled pipeline that a server has."""

    pipeline: str
    """Its name."""
    pipeline_id: str
    id: str
    compiled: Digest
    """Of its bytes; the version is named by it."""


class PipelineRun(Record):
    """A pipeline that runs, or ran."""

    id: str
    name: str
    state: str
    """Kubeflow's: PENDING, RUNNING, SUCCEEDED, FAILED, CANCELING, CANCELED and so on."""
    started: datetime
    finished: datetime | None
    schedule_id: str | None
    """The schedule that started it."""
    failure: str
    """What the server says of a run that failed; it may say nothing."""
    url: str
    """Where to look at it."""

    @property
    def has_ended(self) -> bool:
        """Whether its state is its last."""
        return self.state not in UNFINISHED


class Plan(Record):
    """What a schedule is to be."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
    cron: str
    """Minute, hour, day of the month, month, day of the week."""
    version: Version
    arguments: dict[str, str]


class Schedule(Record):
    """A pipeline that is started again and again, one run at a time."""

    id: str
    name: str
    cron: str
    enabled: bool
    plan: str
    """The digest of the plan that it was made by, or what somebody else wrote in its place."""
    created: datetime
    last_run: PipelineRun | None = None
    next_run: datetime | None
    """By its cron in UTC; null where it is disabled, or has a cron that is not one of ours."""
