"""The records of ATIF, Harbor's format of trajectories, with the fields that an importer reads.

PyPI's `atif` has all fields, refuses unknown ones, and accepts any version.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, JsonValue

_VERSION = re.compile(r"ATIF-v1\.[5-8](\.\d+)?")


def _readable(version: str) -> str:
    if not _VERSION.fullmatch(version):
        raise ValueError("it is not a version from ATIF-v1.5 to ATIF-v1.8; convert the trajectory")
    return version


class ToolCall(BaseModel):
    """One call of a step."""

    tool_call_id: str
    function_name: str
    arguments: JsonValue = None


class SubagentRef(BaseModel):
    """A reference to the trajectory of an agent that a step started."""

    trajectory_id: str | None = None
    """The id of an embedded trajectory; without it, the trajectory is in its own file."""


class Result(BaseModel):
    """One result of a step."""

    source_call_id: str | None = None
    content: JsonValue = None
    subagent_trajectory_ref: list[SubagentRef] | None = None

    @property
    def is_of_world(self) -> bool:
        """Whether it is an observation, possibly an empty one, and not another agent's report."""
        return self.content is not None and not self.subagent_trajectory_ref


class Observation(BaseModel):
    """The results of a step."""

    results: list[Result] = []


class Step(BaseModel):
    """A message, with the agent's calls and their results."""

    source: Literal["system", "user", "agent"]
    message: JsonValue = ""
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    timestamp: str | None = None
    is_copied_context: bool | None = None
    """Whether the step is copied from an earlier trajectory."""

    @property
    def results(self) -> list[Result]:
        """The results of its observation."""
        return self.observation.results if self.observation else []


class Agent(BaseModel):
    """The agent."""

    name: str
    model_name: str | None = None
    tool_definitions: list[JsonValue] | None = None


class Document(BaseModel):
    """One trajectory."""

    schema_version: Annotated[str, AfterValidator(_readable)]
    trajectory_id: str | None = None
    agent: Agent
    steps: list[Step]
    continued_trajectory_ref: str | None = None
    """The file that continues this trajectory."""
    subagent_trajectories: list["Document"] | None = None
