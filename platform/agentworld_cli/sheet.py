"""Prints a domain's description."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agentworld_cli.show import plain

if TYPE_CHECKING:
    from agentworld.domains.sheet import DomainSheet

_MOST_CHARACTERS = 100
"""The limit for a prompt; `--json` shows it completely."""


def sheet_lines(sheet: "DomainSheet") -> Iterator[str]:
    """The lines; text of a world or a task is indented."""
    live = "with live environments" if sheet.has_environments else "recorded logs only"
    yield f"{sheet.name} {sheet.version}, {live}"
    yield f"tools: {', '.join(sheet.tools) or 'none'}"
    yield f"rules verify: {', '.join(sheet.axes) or 'nothing'}"
    if sheet.has_environments:
        yield from _needs(sheet)
        yield f"launchers: {', '.join(sheet.launchers) or 'none'}"
        yield from _section("tasks", sheet.families.items())
    variants = (
        (str(variant.number), ", ".join(variant.pools), _shorten(variant.text))
        for variant in sheet.prompt_variants
    )
    yield from _section("prompts, with the pools that draw them", variants)
    yield from _example(sheet)


def _needs(sheet: "DomainSheet") -> Iterator[str]:
    rows = (
        (need.program, need.package, "missing" if need.is_missing else "installed")
        for need in sheet.needs
    )
    yield from _section("programs, with their packages", rows)
    if any(need.is_missing for need in sheet.needs):
        yield f"run `agentworld domain install {sheet.name}` to install what is missing"
    elif sheet.unavailable:
        yield plain(sheet.unavailable)


def _example(sheet: "DomainSheet") -> Iterator[str]:
    example = sheet.example
    yield "example:"
    if example.instruction:
        yield f"  task: {plain(example.instruction)}"
    yield from (f"  start: {plain(line)}" for line in example.start.splitlines())
    yield from (f"  > {plain(line)}" for line in example.action.split("\n"))
    if example.observation is not None:
        yield from (f"  {plain(line)}" for line in example.observation.split("\n"))


def _shorten(text: str) -> str:
    line = " | ".join(text.splitlines())
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."


def _section(title: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows in columns; the last column has no limit."""
    cells = [[plain(cell) for cell in row] for row in rows]
    yield f"{title}:{'' if cells else ' none'}"
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for *first, last in cells:
        padded = (f"{cell:<{width}}  " for cell, width in zip(first, widths, strict=False))
        yield f"  {''.join(padded)}{last}"
