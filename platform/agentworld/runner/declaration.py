"""The declaration of a step: what other code knows of it without importing it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from agentworld.errors import InputError

if TYPE_CHECKING:
    from agentworld.recipes import Recipe
    from agentworld.records.base import Record

Kind = Literal["plain", "training", "live", "deployment"]
"""Where a step runs:

    plain       in its own pod
    training    in one or several processes, possibly on several nodes
    live        in a pod that can run a sandbox, because it opens live environments
    deployment  in its own pod, and then on the cluster that serves the result
"""


class Input(NamedTuple):
    """An argument of a step, in addition to its recipe and its store."""

    name: str
    step: str = ""
    """The step whose folder it is; empty for a text."""
    reads_files: bool = False
    """Whether it needs the folder's files, not only its records."""
    help: str = ""
    """The meaning of a text, for people."""
    default: str | None = None
    """Null if it is required."""


class Step(NamedTuple):
    """A step of a pipeline; the function `plan` of `agentworld.steps.NAME` implements it."""

    name: str
    does: str
    """One sentence for the command's help and the guide."""
    makes: str
    """What the digest in its receipt identifies."""
    recipe: Callable[["Recipe"], Sequence["Record"]]
    """The part of the recipe that its result depends on."""
    inputs: tuple[Input, ...] = ()
    kind: Kind = "plain"
    pipelines: tuple[str, ...] = ()
    """The pipelines that have this step."""
    optional: bool = False
    """Whether they have it only if the recipe has its part."""
    command: str = ""
    """The words after `agentworld`; empty if only a pipeline runs it."""

    @property
    def usage(self) -> str:
        """Its arguments in order."""
        return " ".join(
            ["RECIPE", "STORE", *(step_input.name.upper() for step_input in self.inputs)]
        )

    def bind(self, arguments: Sequence[str]) -> dict[str, str]:
        """Its inputs by name, from a recipe, a store and the others; raises InputError."""
        values = arguments[2:]
        defaults = [step_input.default for step_input in self.inputs[len(values) :]]
        if len(arguments) < 2 or len(values) > len(self.inputs) or None in defaults:
            raise InputError(
                f"{self.name} takes {self.usage}, not {len(arguments)} arguments; give these"
            )
        filled = [*values, *(default or "" for default in defaults)]
        return {
            step_input.name: value for step_input, value in zip(self.inputs, filled, strict=True)
        }
