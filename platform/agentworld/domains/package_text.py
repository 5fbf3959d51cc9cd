"""Text files that a domain's package holds: prompts, a judge's instruction, patterns."""

from importlib import resources

from agentworld.records.trajectory import PromptParts


def read_text(package: str, name: str) -> str:
    """The text of a file beside a package's modules."""
    return resources.files(package).joinpath(name).read_text()


def read_prompt_templates(package: str) -> tuple[PromptParts, ...]:
    """The parts of a system prompt that all episodes share, by variant, from `prompts.txt`.

    Each line is a variant: the task, then an action space and a demonstration if the domain has
    them, with ` | ` between the parts.
    """
    return tuple(map(_read_template, read_text(package, "prompts.txt").splitlines()))


def _read_template(line: str) -> PromptParts:
    fields = ("task_description", "action_space", "demonstrations")
    return PromptParts(**dict(zip(fields, line.split(" | "), strict=False)))
