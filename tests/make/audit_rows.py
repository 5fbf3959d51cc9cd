"""Converts the output of an audit command to rows: a subject, its grade, its signer and time, or a
problem.

Only this module knows the format of each command's output. Names from a store's script replace
digests, keys, ids and times; unnamed ones are left out.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

Answer = dict[str, Any]
Call = Callable[[str], Any]
"""Runs the program as a user does."""
UNDATED = ("agent list", "audit restored", "audit withdrawn")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
_UNNAMED = re.compile(r"(?:sha256:)?[0-9a-f]{64}|[0-9a-f]{32}")


class Names(NamedTuple):
    """The names of a store's objects, and the start of each act."""

    words: dict[str, str]
    """Names by digest, key or id."""
    acts: list[tuple[datetime, str]]


class History(NamedTuple):
    """The store, and the end of each part."""

    store: Path
    names: Names
    moments: dict[str, datetime]
    missed: dict[str, str]
    """By command, the reported losses before they are recorded, because these commands take no
    time.
    """


def tables(path: Path) -> dict[str, list[str]]:
    """The rows of each command, by its arguments."""
    parts = path.read_text().strip().split("\n\n")
    return {first: rows for first, *rows in (part.splitlines() for part in parts)}


def answered(call: Call, words: str, history: History) -> list[str]:
    """The rows of a command, with the times at which they are shown; some commands take no time.

    A name in capital letters is replaced by its digest.
    """
    if words in history.missed:
        return table([rows_of(words, history.missed[words], "", history.names)])
    command = words
    for word, name in history.names.words.items():
        command = command.replace(name.replace(" ", "-").upper(), word)
    command += f" --store {history.store}" + ("" if " export " in words else " --json")
    last, rows = [*history.moments][-1], []
    for name, moment in history.moments.items():
        if name == last or words not in UNDATED:
            option = "" if name == last else f" --at {moment.isoformat()}"
            result = call(command + option)
            rows.append(rows_of(words, result.out, result.error, history.names))
    return table(rows)


def rows_of(words: str, out: str, error: str, names: Names) -> list[str]:
    """The rows of a command's output with `--json`, and of its error message if it printed
    nothing.
    """
    verb, *arguments = words.split()[1:]
    rows: Iterable[str] = ()
    if not out and error:
        rows = [_problem("the command", error.splitlines()[-1])]
    elif verb == "export":
        rows = _EXPORTS[arguments[arguments.index("--format") + 1]](out)
    else:
        rows = _COMMANDS[verb](json.loads(out))
    return [named(row, names) for row in rows]


def table(rows_at: Sequence[Sequence[str]]) -> list[str]:
    """Every row once, after the numbers of the times at which it exists."""
    rows = dict.fromkeys(row for rows in rows_at for row in rows)
    return [f"{_moments(row, rows_at)} {row}" for row in rows]


def named(row: str, names: Names) -> str:
    """Replaces digests, keys, ids and times by names."""
    for word, name in names.words.items():
        row = row.replace(word, name)
    row = _TIME.sub(lambda match: f"<{_act(match[0], names)}>", row)
    return _UNNAMED.sub("...", row)


def _moments(row: str, rows_at: Sequence[Sequence[str]]) -> str:
    return "".join(str(n) if row in rows else "." for n, rows in enumerate(rows_at, 1))


def _act(text: str, names: Names) -> str:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    past_acts = [name for start, name in names.acts if start <= moment]
    return past_acts[-1] if past_acts else "long ago"


def _row(subject: str, grade: str | None = "", signer: str | None = "", at: str | None = "") -> str:
    return " | ".join(str(part or "-") for part in (subject, grade, signer, at))


def _problem(subject: str, problem: str) -> str:
    return f"{subject} ! {problem.strip()}"


def _problems(subject: str, problems: Iterable[str]) -> Iterator[str]:
    for problem in problems:
        yield _problem(subject, problem)


def _edge(subject: str, edge: Answer | None) -> Iterator[str]:
    statement = (edge or {}).get("edge") or {}
    signature = (edge or {}).get("signature") or {}
    yield _row(subject, edge and edge["grade"], signature.get("key"), statement.get("at"))
    yield from _problems(f"edge of {subject}", (edge or {}).get("problems", ()))


def _run(verification: Answer) -> Iterator[str]:
    subject = verification["subject"]
    yield _row(f"{subject}, weights {verification.get('weights')}", verification["grade"])
    yield from _problems(subject, verification["problems"])
    for note in verification["notes"]:
        yield _row(f"{subject}: {note}")


def _agent(answer: Answer) -> Iterator[str]:
    agent, live = answer["subject"], answer["live"]
    yield from _edge(agent, answer["edge"])
    yield _row(f"{agent} registered", at=answer["registered_at"])
    origin = answer["run"]["id"], answer["simulator"], answer["world_model"], answer["data"]
    yield _row(f"{agent} made by {' of '.join(map(str, origin))}")
    for stage in answer["stages"]:
        yield _row(f"{stage['stage']} {stage['artifact']} of {stage['parents']} {stage['data']}")
    for base in answer["bases"]:
        yield _row(f"base {base['artifact']}")
    if live:
        yield _row(f"live {live['report']}", "signed" if live["signature"] else "unsigned")
    yield from (_row(f"in use as {alias}") for alias in answer["in_use_as"])
    yield from _revalidations(agent, answer["revalidate"])
    yield from _problems(agent, answer["problems"])
    yield from _problems(f"{agent} incomplete", answer["notes"])
    if answer["evidence"]:
        yield from _run(answer["evidence"])


def _revalidations(agent: str, reasons: Iterable[Answer]) -> Iterator[str]:
    for reason in reasons:
        move = f"{reason['alias']} from {reason['trained_in']} to {reason['simulator']}"
        yield _row(f"{agent} revalidate: {move}", reason["problem"], at=reason["at"])


def _agents(answer: Answer) -> Iterator[str]:
    """`agent list`."""
    for agent in answer["agents"]:
        columns = agent["agent"], agent["run"], agent["simulator"]
        yield _row(" of ".join(columns), agent["grade"])
        labels = ", ".join(agent["in_use_as"])
        yield _row(f"{agent['agent']} in use as {labels or 'nothing'}", agent["state"])
        yield from _revalidations(agent["agent"], agent["revalidate"])
    yield from _problems("agents", answer["problems"])


def _origins(answer: Answer) -> Iterator[str]:
    for agent in answer["agents"]:
        yield from _edge(f"{agent['agent']} of {agent['run']['id']}", agent["edge"])


def _simulator(answer: Answer) -> Iterator[str]:
    yield _row(f"{answer['simulator']} serves {answer['world_model']}")
    yield from _origins(answer)
    for edge in answer["unregistered"]:
        claim = edge["claim"]
        yield _row(f"unregistered {claim['agent']} of {edge['run']}", edge["grade"], at=edge["at"])
    yield from (_row(f"other run {run['id']}") for run in answer["other_runs"])
    yield from _problems("simulator", answer["problems"])
    for verification in answer["evidence"].values():
        yield from _run(verification)


def _dataset(answer: Answer) -> Iterator[str]:
    for reader in answer["world_models"]:
        yield _row(f"{reader['world_model']} read {answer['data']} in {reader['stages']}")
    for simulator in answer["simulators"]:
        yield _row(f"{simulator['simulator']} serves {simulator['world_model']}")
        yield from _origins(simulator)


def _alias(answer: Answer) -> Iterator[str]:
    yield _row(f"{answer['alias']} means {answer['simulator']}")
    for word in ("since", "until"):
        if change := answer[word]:
            yield _row(f"{word}: {_meaning(change)}", signer=change["set_by"], at=change["at"])


def _meaning(change: Answer) -> str:
    parts = ["nothing" if change["ended"] else change["simulator"]]
    if change["canary"]:
        parts.append(f"canary {change['canary']['percent']} % {change['canary']['simulator']}")
    parts += [f"{gate['metric']} {gate['value']} of {gate['least']}" for gate in change["gate"]]
    parts += [f"by {change['report']}"] if change["report"] else []
    parts += [f"override {change['override']}"] if change["override"] else []
    return ", ".join(parts)


def _diff(answer: Answer) -> Iterator[str]:
    for difference in answer["differences"]:
        yield _row(f"{difference['what']}: {difference['first']} and {difference['second']}")


def _verify(answer: Answer) -> Iterator[str]:
    for verification in answer["runs"].values():
        yield from _run(verification)
    for version in answer["versions"]:
        yield _row(version["subject"], version["grade"])
        yield from _problems(version["subject"], version["problems"])
    yield from _problems("all", answer["problems"])


def _restored(answer: Answer) -> Iterator[str]:
    for run, copies in answer["runs"].items():
        yield from (_row(f"run {run} lost {copy}") for copy in copies)
    yield from (_row(f"lost {copy}") for copy in answer["others"])


def _withdrawn(answer: Answer) -> Iterator[str]:
    for version in answer["versions"]:
        yield _row(f"{version['registered_as']}@{version['version']} is gone", at=version["at"])


def _in_toto(out: str) -> Iterator[str]:
    for envelope in map(json.loads, out.splitlines()):
        statement = json.loads(base64.b64decode(envelope["payload"]))
        predicate = statement["predicate"]
        kind = statement["predicateType"].rsplit(":", 2)[1]
        subject = " ".join(_subject(item) for item in statement["subject"])
        signers = " ".join(item["keyid"] for item in envelope["signatures"])
        grade, at = _first("grade", predicate), _first("at", predicate)
        yield _row(f"{kind} {subject}", grade, signers, at)


def _subject(subject: Answer) -> str:
    return f"{subject.get('name', '')} sha256:{subject['digest']['sha256']}".strip()


def _first(name: str, value: object) -> str | None:
    """The value of this key in a statement, at any depth."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get(name), str):
        return str(value[name])
    return next(filter(None, (_first(name, inner) for inner in value.values())), None)


def _csv(out: str) -> Iterator[str]:
    for row in csv.DictReader(io.StringIO(out)):
        origin = row["run"], row["simulator"], row["world_model"], row["data"]
        yield _row(f"{row['agent']}@{row['version']} of {' of '.join(origin)}", row["grade"])


def _openlineage(out: str) -> Iterator[str]:
    for event in map(json.loads, out.splitlines()):
        (output,) = event["outputs"]
        inputs = ", ".join(item["name"] for item in event["inputs"])
        work = f"{event['eventType']} {event['job']['name']} {output['name']} of {inputs}"
        yield _row(work, at=event["eventTime"])


def _cyclonedx(out: str) -> Iterator[str]:
    bill = json.loads(out)
    root = bill["metadata"]["component"]
    properties = {item["name"].rsplit(":", 1)[-1]: item["value"] for item in root["properties"]}
    at = bill["metadata"].get("timestamp")
    yield _row(f"{root['name']}@{root['version']}", properties.get("grade"), at=at)
    for problem in ("break", "incomplete"):
        yield from _problems(problem, [properties[problem]] if problem in properties else [])
    for part in bill["components"]:
        yield _row(f"{part['type']} {part['name'].rpartition('-')[0]} {part.get('bom-ref')}")


_EXPORTS: dict[str, Callable[[str], Iterator[str]]] = {
    "in-toto": _in_toto,
    "csv": _csv,
    "openlineage": _openlineage,
    "cyclonedx": _cyclonedx,
}
_COMMANDS: dict[str, Callable[[Answer], Iterator[str]]] = {
    "agent": _agent,
    "alias": _alias,
    "dataset": _dataset,
    "diff": _diff,
    "list": _agents,
    "restored": _restored,
    "simulator": _simulator,
    "verify": _verify,
    "withdrawn": _withdrawn,
}
