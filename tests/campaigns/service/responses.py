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
    response: Row
    """The response's fields: simulator, run, episode, step, observation and so on."""
    header: str | None
    """The simulator in the response's header; null if the client library hides it."""

    @property
    def content(self) -> tuple[object, ...]:
        """The fields that must be equal in repeated responses."""
        fields = ("observation", *_OUTCOME, *_CONFIDENCE)
        return self.action, *(self.response[field] for field in fields)

    @property
    def simulators(self) -> set[str]:
        """The simulators that the response names; exactly one."""
        return {self.response["simulator"], self.header or self.response["simulator"]}


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


class Responses(NamedTuple):
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


def read_responses(folder: Path) -> Responses:
    """From the raw responses, and from the client library's."""
    responses = Responses({}, {}, [], [], set(), set(), set(), {}, 0, [])
    lost = 0
    for line in read(folder / "wire.jsonl"):
        lost += "lost" in line
        if "lost" not in line:
            _hear(responses, line)
    for line in read(folder / "responses.jsonl"):
        if "result" in line:
            responses.answers.append(_handed_on(line))
    return responses._replace(lost=lost)


def _handed_on(line: Row) -> Answer:
    names = line["client"], line["episode"], line["step"], line["action"]
    return Answer(*names, line["result"], None)


def _hear(responses: Responses, line: Row) -> None:
    body = _parsed(line["text"])
    if body is None or line["simulator"] is None:
        problem = f"{line['path']} was answered by {line['status']} {line['text'][:200]!r}"
        responses.broken.append(Finding("untyped", problem))
    elif line["status"] >= 400:
        _hear_refusal(responses, line, body)
    else:
        _hear_answer(responses, line, body)


def _parsed(text: str) -> Row | None:
    """Null if it is not an object; a response may be empty if the request has no result."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _hear_answer(responses: Responses, line: Row, body: Row) -> None:
    simulator = line["simulator"]
    match [line["method"], *line["path"].strip("/").split("/")]:
        case ["POST", "steps"]:
            responses.answers.append(Answer(*_asked(line), body, simulator))
        case ["POST", "episodes"]:
            simulators = {body["simulator"], simulator}
            responses.openings[body["episode"]] = {**line["body"], "simulators": simulators}
        case ["POST", "runs"]:
            run = body["run"]
            responses.runs.setdefault(run["id"], set()).update((run["simulator"], simulator))
        case ["GET", "runs", _]:
            responses.runs.setdefault(body["id"], set()).update((body["simulator"], simulator))
        case ["POST", "runs", run, "close"]:
            responses.runs[run].update((body["simulator"], simulator))
            responses.closed_runs.add(run)
        case ["POST", "episodes", episode, "close"]:
            responses.closed_episodes.add(episode)


def _hear_refusal(responses: Responses, line: Row, body: Row) -> None:
    error = body.get("error")
    if not _is_typed(error):
        problem = f"{line['path']} failed with {line['status']} {line['text'][:200]!r}"
        responses.broken.append(Finding("untyped", problem))
        return
    kind = body["error"]["kind"]
    responses.refusals[kind] = responses.refusals.get(kind, 0) + 1
    if kind == "conflict" and line["path"] == "/steps":
        responses.refused.append(Refused(*_asked(line), line["simulator"], line["sent"]))
    if kind == "not-found":
        responses.missed.update(_named(line))


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
