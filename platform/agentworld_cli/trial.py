"""Prints a trial: for people side by side if both observations fit, for programs as JSON lines."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from rich.cells import cell_len

from agentworld.errors import InputError
from agentworld_cli.show import console, count_noun, plain

if TYPE_CHECKING:
    from agentworld.operations.try_domain import TrialEnd, TrialStart, TrialTurn

_ENDINGS = {
    "task": "an action closed the task",
    "limit": "the turn limit",
    "environment": "the environment ended the episode",
    "person": "no more actions",
}
_BY_TRANSCRIPT = {True: "success", False: "failure", None: "open"}
_BY_STATE = {True: "success", False: "failure", None: "unknown"}
_VERDICT = {True: "the same", False: "different"}
_INDENT = "  "
_GAP = "   "


class TrialView(Protocol):
    """Prints a trial."""

    def show_start(self, start: "TrialStart") -> None:
        """Prints the start of both worlds."""

    def show_turn(self, turn: "TrialTurn") -> None:
        """Prints both observations of an action."""

    def show_refusal(self, error: InputError) -> None:
        """Prints why a line is not a valid action; it was sent to neither world."""

    def show_end(self, start: "TrialStart", end: "TrialEnd") -> None:
        """Prints the task's result, and how often the worlds agreed."""


def trial_view(*, as_json: bool) -> TrialView:
    """The view for programs, or the one for people."""
    return _JsonLines() if as_json else _Transcript()


def read_actions(*, as_json: bool) -> Iterator[str]:
    """The lines of stdin until it ends or is interrupted; blank lines are left out."""
    is_person = sys.stdin.isatty()
    if is_person:
        with suppress(ImportError):  # enables line editing with a history
            import readline  # noqa: F401
    prompt = "> " if is_person and not as_json else ""
    while True:
        try:
            line = input(prompt)
        except (EOFError, KeyboardInterrupt):
            if prompt:
                print()
            return
        except UnicodeDecodeError as error:
            raise InputError(f"the actions are not UTF-8 text ({error}); correct them") from error
        if line.strip():
            yield line


class _JsonLines:
    def show_start(self, start: "TrialStart") -> None:
        _print_json("start", start._asdict())

    def show_turn(self, turn: "TrialTurn") -> None:
        _print_json("turn", turn._asdict())

    def show_refusal(self, error: InputError) -> None:
        _print_json("refusal", {"problem": str(error)})

    def show_end(self, _start: "TrialStart", end: "TrialEnd") -> None:
        _print_json("end", end._asdict())


def _print_json(event: str, fields: dict[str, object]) -> None:
    """Prints one line of ASCII JSON and flushes it, because a program may wait for it."""
    line = json.dumps({"event": event, **fields}).replace("\x7f", r"\u007f")
    print(line, flush=True)


class _Transcript:
    """Indents the text of a world, so that it cannot imitate other output."""

    def show_start(self, start: "TrialStart") -> None:
        if start.simulator:
            print(f"simulator: {start.simulator}")
        if start.task is not None:
            print(f"task: {plain(start.task)}")
        print("start:", *_lines(start.text.strip("\n") or "(nothing)"), sep="\n")
        if start.tools:
            print(f"tools: {plain(', '.join(start.tools))}")
        print(f"an action is a line such as: {plain(start.example)}")

    def show_turn(self, turn: "TrialTurn") -> None:
        if not sys.stdin.isatty():
            print(f"> {plain(turn.action)}")
        if turn.simulated is None:
            print(*_lines(turn.live), sep="\n")
        else:
            left, right = ["live:", *_lines(turn.live)], ["simulator:", *_lines(turn.simulated)]
            print(*_beside(left, right), sep="\n")
            print(_verdict(turn))
        if turn.problem:
            print(f"no observation of the simulator: {plain(turn.problem)}")

    def show_refusal(self, error: InputError) -> None:
        print(f"no action: {plain(str(error))}")

    def show_end(self, start: "TrialStart", end: "TrialEnd") -> None:
        print(f"ended after {count_noun(end.steps, 'turn')}: {_ENDINGS[end.ending]}")
        if start.simulator:
            print(f"the same by the rules of {start.domain}: {end.num_same} of {end.num_judged}")
        if start.task is not None:
            print(f"task, by the live transcript: {_BY_TRANSCRIPT[end.live_transcript]}")
            print(f"task, by the live state: {_BY_STATE[end.live_state]}")
            if start.simulator:
                result = _BY_TRANSCRIPT[end.simulated_transcript]
                print(f"task, by the simulator's transcript: {result}")


def _lines(text: str) -> list[str]:
    return [f"{_INDENT}{plain(line)}" for line in text.split("\n")]


def _beside(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Two columns, or one below the other if the terminal is too narrow."""
    width = max(map(cell_len, left))
    if width + len(_GAP) + max(map(cell_len, right)) > console.width:
        return [*left, *right]
    pairs = zip_longest(left, right, fillvalue="")
    return [f"{one}{' ' * (width - cell_len(one))}{_GAP}{other}".rstrip() for one, other in pairs]


def _verdict(turn: "TrialTurn") -> str:
    if turn.is_same is None:
        return "verifier: no verdict"
    axes = ", ".join(axis for axis, verdict in turn.verdicts.items() if verdict is not None)
    return f"verifier: {_VERDICT[turn.is_same]} ({axes})"
