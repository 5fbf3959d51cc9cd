"""How a run of a pipeline ended."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import StringConstraints

from agentworld.records.base import Record

JobName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,127}$")]


class Conclusion(Record):
    """What the last step of a run wrote down of all others."""

    job: JobName
    """The run's id, as Kubeflow has it."""
    pipeline: str
    recipe: str
    state: Literal["succeeded", "refused", "failed"]
    started: datetime | None
    """When its first step did; null where that never began."""
    ended: datetime
    step: str = ""
    """The one that failed, or refused; empty where nobody can tell."""
    kind: str = ""
    """Of its error; empty where it had no words."""
    sentence: str = ""
    """Its own, or else what Kubeflow said."""
