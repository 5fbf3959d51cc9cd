"""Clients' responses, from their journals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.harness.finding import Finding
from campaigns.harness.journal import read

Row = dict[str, Any]
_OUTCOME = ("reward", "done", "truncated")
_CONFIDENCE = ("mean_logprob", "agreement", "low_confidence")


class Answer(NamedTuple):
    """A client's response to a step."""

    client: str
    episode: str
    number: int
    """As requested, with its action."""
    action: str
    told: Row
    """The response's fields: simulator, run, episode, step, observation and so on."""
    header: str | None
    """The simulator in the response's header; null if the client library hides it."""

    @property
    def content(self) -> tuple[object, ...]:
        """The fields that must be equal in repeated responses."""
        fields = ("observation", *_OUTCOME, *_CONFIDENCE)
        return self.action, *(self.told[field] for field in fields)

    @property
    def simulators(self) -> set[str]:
        """The simulators that the response names; exactly one."""
        return {self.told["simulator"], self.header or self.told["simulator"]}


class Refused(NamedTuple):
    """A step that the run's own simulator refused as out of order, or as taken with another
    action.
    """

    client: str
    episode: str
    number: int
    action: str
    simulator: str
    sent: float
    """The time of the request; seconds since 1970."""


class Heard(NamedTuple):
    """All responses."""

    runs: dict[str, set[str]]
    """The simulators of each run in responses; one each."""
    openings: dict[str, Row]
    """By episode, its opening; `simulators` are those that the response names."""
    answers: list[Answer]
    refused: list[Refused]
    closed_episodes: set[str]
    closed_runs: set[str]
    missed: set[str]
    """Runs and episodes that were reported as missing."""
    refusals: dict[str, int]
    """By kind."""
    lost: int
    """Requests without a response."""
    broken: list[Finding]

    def start(self, episode: str) -> Row:
        """The opening of an episode, or of the one that it derives from."""
        opening = self.openings[episode]
        source = opening.get("fork") or opening.get("replay")
        return self.start(source["episode"]) if source else opening


def read_heard(folder: Path) -> Heard:
    """From what came over the wire, and what the client library handed on."""
    heard = Heard({}, {}, [], [], set(), set(), set(), {}, 0, [])
    lost = 0
    for line in read(folder / "wire.jsonl"):
        lost += "lost" in line
        if "lost" not in line:
            _hear(heard, line)
    for line in read(folder / "told.jsonl"):
        if "result" in line:
            heard.answers.append(_handed_on(line))
    return heard._replace(lost=lost)


def _handed_on(line: Row) -> Answer:
    names = line["client"], line["episode"], line["step"], line["action"]
    return Answer(*names, line["result"], None)


def _hear(heard: Heard, line: Row) -> None:
    told = _parsed(line["text"])
    if told is None or line["simulator"] is None:
        words = f"{line['path']} was answered by {line['status']} {line['text'][:200]!r}"
        heard.broken.append(Finding("untyped", words))
    elif line["status"] >= 400:
        _hear_refusal(heard, line, told)
    else:
        _hear_answer(heard, line, told)


def _parsed(text: str) -> Row | None:
    """Null if it is not an object; a response may be empty if the request has no result."""
    try:
        told = json.loads(text or "{}")
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _hear_answer(heard: Heard, line: Row, told: Row) -> None:
    simulator = line["simulator"]
    match [line["method"], *line["path"].strip("/").split("/")]:
        case ["POST", "steps"]:
            heard.answers.append(Answer(*_asked(line), told, simulator))
        case ["POST", "episodes"]:
            named = {told["simulator"], simulator}
            heard.openings[told["episode"]] = {**line["body"], "simulators": named}
        case ["POST", "runs"]:
            run = told["run"]
            heard.runs.setdefault(run["id"], set()).update((run["simulator"], simulator))
        case ["GET", "runs", _]:
            heard.runs.setdefault(told["id"], set()).update((told["simulator"], simulator))
        case ["POST", "runs", run, "close"]:
            heard.runs[run].update((told["simulator"], simulator))
            heard.closed_runs.add(run)
        case ["POST", "episodes", episode, "close"]:
            heard.closed_episodes.add(episode)


def _hear_refusal(heard: Heard, line: Row, told: Row) -> None:
    error = told.get("error")
    if not _is_typed(error):
        words = f"{line['path']} failed with {line['status']} {line['text'][:200]!r}"
        heard.broken.append(Finding("untyped", words))
        return
    kind = told["error"]["kind"]
    heard.refusals[kind] = heard.refusals.get(kind, 0) + 1
    if kind == "conflict" and line["path"] == "/steps":
        heard.refused.append(Refused(*_asked(line), line["simulator"], line["sent"]))
    if kind == "not-found":
        heard.missed.update(_named(line))


def _is_typed(error: object) -> bool:
    """`internal` is the service's error for its own bugs."""
    return (
        isinstance(error, dict)
        and type(error.get("kind")) is str
        and error["kind"] not in ("", "internal")
        and type(error.get("message")) is str
        and type(error.get("retryable")) is bool
    )


def _asked(line: Row) -> tuple[str, str, int, str]:
    body = line["body"]
    return line["client"], body["episode"], body["step"], body["action"]


def _named(line: Row) -> Iterator[str]:
    body = line["body"] or {}
    yield from (body[name] for name in ("episode", "run") if name in body)
    yield from line["path"].strip("/").split("/")
