"""The result of a pipeline's run."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import StringConstraints

from agentworld.records.base import Record

JobName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,127}$")]


class Conclusion(Record):
    """The summary that the last step of a run writes."""

    job: JobName
    """Kubeflow's id of the run."""
    pipeline: str
    recipe: str
    state: Literal["succeeded", "refused", "failed"]
    started: datetime | None
    """The start of its first step; null if that never started."""
    ended: datetime
    step: str = ""
    """The step that failed or stopped the run; empty if unknown."""
    kind: str = ""
    """The kind of its error; empty if unknown."""
    sentence: str = ""
    """The error message, or else Kubeflow's message."""
