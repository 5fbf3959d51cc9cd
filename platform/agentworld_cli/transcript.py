"""Prints an episode as a transcript: actions and observations in their order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentworld_cli.show import plain

if TYPE_CHECKING:
    from agentworld.records.episode import Episode, EpisodeStep

_ERASED = "(erased)"


def transcript(episode: "Episode") -> Iterator[str]:
    """The lines; text of an agent or a world is indented, so that it cannot imitate other
    output.
    """
    yield f"episode {plain(episode.id)} of run {plain(episode.run)}"
    yield f"simulator {plain(episode.simulator)}"
    for name, text in _start_sections(episode):
        yield f"{name}:"
        yield from _indent(text)
    for step in episode.steps:
        yield f"step {step.number}:"
        yield from _indent(step.action, "> ")
        yield from _indent(step.observation)
        if outcome := ", ".join(_outcome(step)):
            yield f"  {outcome}"
    yield f"ended: {plain(episode.closed)}" if episode.closed else "open"


def _start_sections(episode: "Episode") -> Iterator[tuple[str, str | None]]:
    opening = episode.opening
    if opening is None:
        yield "start", None
        return
    if opening.task:
        yield "task", opening.task.instruction
    yield "start", opening.start
    if opening.simulation_instruction:
        yield "simulation instruction", opening.simulation_instruction
    if opening.accelerators:
        yield "engine on", "\n".join(opening.accelerators)
    if opening.tools:
        yield "tools", "\n".join(f"{tool.name}: {tool.description}" for tool in opening.tools)
    for name, source in (("fork", opening.fork), ("replay", opening.replay)):
        if source:
            yield name, f"of the first {source.step} steps of episode {source.episode}"
    for number, turn in enumerate(opening.prior_turns, 1):
        yield f"given action {number}", turn.action
        yield f"given observation {number}", turn.observation


def _indent(text: str | None, mark: str = "") -> Iterator[str]:
    for line in (_ERASED if text is None else text).split("\n"):
        yield f"  {mark}{plain(line)}"


def _outcome(step: "EpisodeStep") -> Iterator[str]:
    if step.reward is not None:
        yield f"reward {step.reward:g}"
    if step.done:
        yield "the turn limit" if step.truncated else "done"
    if step.confidence.low:
        yield "low confidence"
