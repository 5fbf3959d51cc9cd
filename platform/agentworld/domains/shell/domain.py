"""The domain of the shell: an action is a command, an observation its output and a prompt line."""

from collections.abc import Mapping, Sequence

from agentworld.domains.base import (
    HISTORY,
    OUTPUT,
    Action,
    ActionError,
    Axis,
    Domain,
    Start,
    TinyModel,
)
from agentworld.domains.calls import render_calls
from agentworld.domains.package_text import read_prompt_templates
from agentworld.domains.shell.comparison import mask_volatile
from agentworld.domains.shell.copy_warmup import copy_warmup
from agentworld.domains.shell.grammar import is_unknown_command, read_screen
from agentworld.domains.shell.pretokenizer import pretokenizer_pattern
from agentworld.domains.shell.rubric import RUBRIC
from agentworld.domains.shell.tags import tags_of
from agentworld.domains.shell.tasks import NAME, outcome, solved_task
from agentworld.domains.shell.thought import recorded_thought
from agentworld.domains.shell.verifier import verify
from agentworld.domains.task_defaults import BaseTaskDomain
from agentworld.domains.turn_filters import without_retries
from agentworld.records.task import Task
from agentworld.records.tool import Tool
from agentworld.records.trajectory import Turn

BASH = Tool(
    name="bash",
    description="Runs a command in the shell and shows what it prints.",
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
)


class Shell(BaseTaskDomain):
    """See `Domain`. Its actions are commands, even if an episode names tools."""

    name = NAME
    version = "shell-v1"
    rubric = RUBRIC
    axes: Sequence[Axis] = ("errors", "consistency")
    solved_task = staticmethod(solved_task)
    prompt_templates = read_prompt_templates(__package__)
    tiny = TinyModel(pretokenizer_pattern(), copy_warmup)
    tools = (BASH,)
    minimum_shares = {OUTPUT: 1 / 2, HISTORY: 1 / 3}

    def parse_action(self, text: str) -> str:
        """The first line of what the policy wrote."""
        first, *_ = text.strip().splitlines() or [""]
        if not first.strip():
            raise ActionError("the policy wrote no command")
        return first.strip()

    def render_action(self, action: Action) -> str:
        """A call of `bash` is its command."""
        match action.calls:
            case ():
                return action.text
            case (call,) if call.name == BASH.name and call.arguments.keys() == {"command"}:
                return str(call.arguments["command"])
        return render_calls(action.calls)

    def normalise(self, observation: str) -> str:
        """The observation without empty lines at either end."""
        return observation.strip("\n")

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """The common tags and the class of the command; see `tags`."""
        return tags_of(start.text, turns)

    def mask_volatile(self, observation: str) -> str:
        """See `comparison`."""
        return mask_volatile(observation)

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for a repeated unknown command (Qwen-AgentWorld section 3.1.2)."""
        return without_retries(turns, is_unknown_command)

    def is_failure(self, observation: str) -> bool:
        """Whether the prompt line shows an exit status other than 0."""
        return bool(read_screen(observation).status)

    def thought(self, state: str, action: str) -> str:
        """The files that the action names."""
        return recorded_thought(state, action)

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """See `verifier`."""
        return verify(predicted, truth)

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """The closing action shows exactly the rule's output above the prompt line."""
        return outcome(task, action, observation)


DOMAIN: Domain = Shell()
