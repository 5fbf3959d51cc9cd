"""Terminals as a domain: keystrokes as JSON in, a screen of 40 lines out."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from agentworld.domains.base import (
    OUTPUT,
    ActionError,
    Axis,
    Domain,
    Start,
    TinyModel,
    TurnKind,
)
from agentworld.domains.copy_warmup import copy_warmup
from agentworld.domains.package_text import read_prompt_templates
from agentworld.domains.task_defaults import BaseTaskDomain
from agentworld.domains.terminal.comparison import canonical, mask_volatile
from agentworld.domains.terminal.keys import render_keys
from agentworld.domains.terminal.rubric import RUBRIC
from agentworld.domains.terminal.tags import keys_of, tags_of
from agentworld.domains.terminal.tasks import NAME, solved_task
from agentworld.domains.terminal.transcript import last_block
from agentworld.domains.terminal.verifier import is_failure, verify
from agentworld.domains.transcript import closes
from agentworld.domains.turn_kinds import kind_of_turn
from agentworld.records.task import Task
from agentworld.records.trajectory import Turn

_PATTERN = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
_SEPARATORS = (" ", "\n", ".txt\n", ": ", "/", " > ", '\\n"')


class Terminal(BaseTaskDomain):
    """See `Domain`."""

    name = NAME
    version = "terminal-v1"
    rubric = RUBRIC
    axes: Sequence[Axis] = ("errors", "consistency")
    solved_task = staticmethod(solved_task)
    prompt_templates = read_prompt_templates(__package__)
    tiny = TinyModel(_PATTERN, partial(copy_warmup, _SEPARATORS))
    minimum_shares = {OUTPUT: 1 / 3}

    def parse_action(self, text: str) -> str:
        """The keystrokes in canonical form; the world refuses other text, which stays as it is."""
        text = text.strip()
        if not text:
            raise ActionError("the policy wrote no keystrokes")
        keys = keys_of(text)
        return text if keys is None else render_keys(keys)

    def normalise(self, observation: str) -> str:
        """The screen without spaces at line ends and empty lines at the bottom."""
        return canonical(observation)

    def tags(self, _start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """The common tags and the kind of the keys."""
        return tags_of(turns)

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:
        """The kind of the typed commands."""
        keys = keys_of(action)
        return kind_of_turn("".join(command.keystrokes for command in keys or ()).strip(), tags)

    def mask_volatile(self, observation: str) -> str:
        """Masks times, ids of processes, generated names, and the measurements of `top`."""
        return mask_volatile(observation)

    def is_failure(self, observation: str) -> bool:
        """Whether the last command on the screen failed, by its words."""
        return is_failure(observation)

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """See `verifier`."""
        return verify(predicted, truth)

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether the closing keys show the rule's output between their line and the prompt."""
        keys = keys_of(action)
        if keys is None or not closes(
            task.success, "".join(command.keystrokes for command in keys)
        ):
            return None
        return "\n".join(last_block(observation)) == task.success.output


DOMAIN: Domain = Terminal()
