"""The judge: compares clients' responses with the engines' texts and with the ledger.

It knows the protocol, the tables and the documents, and shares no code with the service.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rfc8785

from campaigns.harness.finding import Finding
from campaigns.harness.journal import read
from campaigns.service import law
from campaigns.service.books import Books, read_books
from campaigns.service.chain import chain_findings, digest, log_findings, signature_findings
from campaigns.service.judged_step import JudgedStep, Saying, Turn
from campaigns.service.responses import Answer, Responses, read_responses

PROMISES = {
    "fabricated": "an observation that no engine said whole, to just these messages",
    "lost": "an answer that the ledger does not hold, or holds otherwise",
    "doubled": "a step that was answered in two ways, or taken twice",
    "crossed_versions": "an answer of another simulator than the run's",
    "rewarded": "a reward or an end that the rules do not give",
    "denied": "the answer to a step that was taken, refused to who asks again",
    "untyped": "a failure that is none of ours, or an answer that is none",
    "unaccounted": "an episode or an entry that the run's log does not account for",
    "unchained": "a digest that does not follow from what it is said to cover",
    "unsigned": "a log without a good signature over all of it, here and in the evidence mirror",
}
"""The broken promise of each kind of finding."""


class Verdict(NamedTuple):
    """The findings, and the amounts of checked data."""

    findings: list[Finding]
    responses: Responses
    books: Books
    num_said: int


def check(folder: Path, ledger_url: str) -> Verdict:
    """Judges a campaign by its folder and its ledger."""
    client_records, books = read_responses(folder), read_books(ledger_url, folder)
    manifests = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    engine_texts = Saying(
        said={line["observation"]: line for line in read(folder / "said.jsonl")},
        secrets={path.name: path.read_text() for path in (folder / "secrets").iterdir()},
        manifests={digest(rfc8785.dumps(manifest)): manifest for manifest in manifests},
    )
    findings = [
        *client_records.broken,
        *_crossed(client_records, books),
        *_answered_otherwise(client_records),
        *_doubled(client_records),
        *_lost(client_records, books),
        *_denied(client_records, books),
        *(
            finding
            for step in _heard_steps(client_records, books)
            for finding in engine_texts.findings(step)
        ),
        *(finding for step in _ledger_steps(books) for finding in engine_texts.findings(step)),
        *chain_findings(books),
        *log_findings(books),
        *signature_findings(books, folder / "keys/simulator/trusted"),
    ]
    return Verdict(findings, client_records, books, len(engine_texts.said))


def _crossed(client_records: Responses, books: Books) -> Iterator[Finding]:
    """A run must have one simulator for ever."""
    for run, names in client_records.runs.items():
        simulators = {books.runs[run]["simulator"]} if run in books.runs else set()
        if len(names | simulators) != 1:
            yield Finding("crossed_versions", f"run {run} is of {_names(names | simulators)}")
    for episode, opening in client_records.openings.items():
        if opening["simulators"] != client_records.runs.get(opening["run"], opening["simulators"]):
            yield Finding("crossed_versions", f"episode {episode} is of another simulator")
    for answer in client_records.answers:
        if answer.simulators != client_records.openings[answer.episode]["simulators"]:
            yield Finding("crossed_versions", f"{_where(answer)} is of {_names(answer.simulators)}")


def _answered_otherwise(client_records: Responses) -> Iterator[Finding]:
    """A response must be to the requested step."""
    for answer in client_records.answers:
        request = client_records.openings[answer.episode]["run"], answer.episode, answer.number
        if request != tuple(answer.response[name] for name in ("run", "episode", "step")):
            yield Finding("fabricated", f"{_where(answer)} is the answer to another step")


def _doubled(client_records: Responses) -> Iterator[Finding]:
    """A step must have one response, for all requests."""
    first_contents: dict[tuple[str, int], tuple[object, ...]] = {}
    for answer in client_records.answers:
        content = first_contents.setdefault((answer.episode, answer.number), answer.content)
        if content != answer.content:
            yield Finding("doubled", f"{_where(answer)} was answered otherwise before")


def _lost(client_records: Responses, books: Books) -> Iterator[Finding]:
    """Responses must be in the ledger, unchanged."""
    known_names = client_records.openings.keys() | client_records.runs.keys()
    for name in client_records.missed & known_names:
        yield Finding("lost", f"{name} was answered and later said not to be there")
    for run in client_records.runs.keys() - books.runs.keys():
        yield Finding("lost", f"run {run} is not there")
    for run in client_records.closed_runs & books.runs.keys():
        if books.runs[run]["final_weights"] is None:
            yield Finding("lost", f"run {run} was closed and is open")
    for name, opening in client_records.openings.items():
        episode = books.episodes.get(name)
        if episode is None or episode.row["run"] != opening["run"]:
            yield Finding("lost", f"episode {name} is not there")
        elif name in client_records.closed_episodes and not episode.row["closed"]:
            yield Finding("lost", f"episode {name} was closed and is open")
    for answer in client_records.answers:
        episode = books.episodes.get(answer.episode)
        if episode is None or episode.content(answer.number) != answer.content:
            yield Finding("lost", f"{_where(answer)} is not there as it was answered")


def _denied(client_records: Responses, books: Books) -> Iterator[Finding]:
    """A repeated request for a step must get its response, from any replica."""
    for refusal in client_records.refused:
        opening, episode = (
            client_records.openings.get(refusal.episode),
            books.episodes.get(refusal.episode),
        )
        step = episode and episode.steps.get(refusal.number)
        is_own = opening and refusal.simulator in opening["simulators"]
        is_taken = step and step.row["at"] < refusal.sent
        if is_own and step and is_taken and step.action == refusal.action:
            yield Finding("denied", f"step {refusal.number} of {refusal.episode} is out of turn")


def _heard_steps(client_records: Responses, books: Books) -> Iterator[JudgedStep]:
    """Steps as clients have them, after their earlier responses.

    An earlier response may have been lost; then the step is the ledger's.
    """
    responses = {(answer.episode, answer.number): answer for answer in client_records.answers}

    def turn(episode: str, number: int) -> Turn | None:
        fork = client_records.openings[episode].get("fork")
        if fork and number <= fork["step"]:
            return turn(fork["episode"], number)
        answer = responses.get((episode, number))
        if answer is not None:
            return answer.action, answer.response["observation"]
        return books.turn(episode, number)

    for answer in client_records.answers:
        body = answer.response
        yield JudgedStep(
            where=_where(answer),
            simulator=next(iter(client_records.openings[answer.episode]["simulators"])),
            opening=client_records.start(answer.episode),
            before=[turn(answer.episode, number) for number in range(1, answer.number)],
            action=answer.action,
            observation=body["observation"],
            outcome=law.Outcome(body["reward"], body["done"], body["truncated"]),
        )


def _ledger_steps(books: Books) -> Iterator[JudgedStep]:
    """The ledger's steps, whether or not a client received them."""
    for name, episode in books.episodes.items():
        turns: list[Turn | None] = []
        for number, step in sorted(episode.steps.items()):
            yield JudgedStep(
                where=f"step {number} of {name} in the ledger",
                simulator=books.runs[episode.row["run"]]["simulator"],
                opening=episode.opening,
                before=list(turns),
                action=step.action or "",
                observation=step.observation,
                outcome=law.Outcome(*step.outcome),
            )
            turns.append((step.action or "", step.observation or ""))


def _where(answer: Answer) -> str:
    return f"step {answer.number} of {answer.episode} to {answer.client}"


def _names(simulators: set[str]) -> str:
    return " and ".join(sorted(map(str, simulators)))
