"""Records of objects on a Kubeflow Pipelines server."""

from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints

from agentworld.records.base import Digest, Record

LONGEST_NAME = 128
"""The limit of a recurring run's name, by the server's database column."""

UNFINISHED = frozenset({"RUNTIME_STATE_UNSPECIFIED", "PENDING", "RUNNING", "PAUSED", "CANCELING"})
"""The states that a run can leave; all others are final."""


class Version(Record):
    """A compiled pipeline on a server."""

    pipeline: str
    """The pipeline's name."""
    pipeline_id: str
    id: str
    compiled: Digest
    """The digest of its bytes, which is the version's name."""


class PipelineRun(Record):
    """A running or ended pipeline."""

    id: str
    name: str
    state: str
    """Kubeflow's state: PENDING, RUNNING, SUCCEEDED, FAILED, CANCELING, CANCELED and so on."""
    started: datetime
    finished: datetime | None
    schedule_id: str | None
    """The schedule that started it."""
    failure: str
    """The server's message about a failed run; it may be empty."""
    url: str
    """The address of its page."""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state not in UNFINISHED


class Plan(Record):
    """The specification of a schedule."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
    cron: str
    """Minute, hour, day of the month, month, day of the week."""
    version: Version
    arguments: dict[str, str]


class Schedule(Record):
    """A pipeline that is started repeatedly, one run at a time."""

    id: str
    name: str
    cron: str
    enabled: bool
    plan: str
    """The digest of the plan that it was made from, or another program's text."""
    created: datetime
    last_run: PipelineRun | None = None
    next_run: datetime | None
    """The next start by its cron in UTC; null if disabled, or if we cannot read its cron."""
