"""Heads, logs and signatures, recomputed from their documentation."""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from campaigns.harness.finding import Finding
from campaigns.service.books import Books, Episode, Row, Step


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def chain_findings(books: Books) -> Iterator[Finding]:
    """Every head must follow from the previous one, and every text must match its digest."""
    for name, episode in books.episodes.items():
        simulator = books.runs[episode.row["run"]]["simulator"]
        row, opening = episode.row, episode.opening
        if digest(episode.opening_text.encode()) != row["opening_digest"]:
            yield Finding("unchained", f"what {name} was opened with is another")
        num_copied = (opening.get("fork") or {"step": 0})["step"]
        if (row["run"], row["num_copied"]) != (opening.get("run"), num_copied):
            yield Finding("unchained", f"the row of {name} is not of its opening")
        start_fields = [name, simulator, row["run"], row["num_copied"], row["opening_digest"]]
        head = digest(rfc8785.dumps(start_fields))
        if sorted(episode.steps) != list(range(1, len(episode.steps) + 1)):
            yield Finding("unchained", f"the steps of {name} are {sorted(episode.steps)}")
            continue
        for number, step in sorted(episode.steps.items()):
            head = _head(head, number, step)
            for text, text_digest in _texts(step):
                if (
                    text is not None
                    and digest(text.encode("utf-8", "surrogatepass")) != text_digest
                ):
                    yield Finding("unchained", f"a text of step {number} of {name} is another")
            if head != step.row["head"]:
                yield Finding("unchained", f"the head of step {number} of {name} is another")
                break


def log_findings(books: Books) -> Iterator[Finding]:
    """Every entry must be in its place, and every episode and step under an entry."""
    for run, entries in books.log.items():
        bodies = [json.loads(body) for _, body in entries]
        positions = [
            (position, entry_body["sequence"], entry_body["run"])
            for (position, _), entry_body in zip(entries, bodies, strict=True)
        ]
        if positions != [(n, n, run) for n in range(1, books.runs[run]["log_length"] + 1)]:
            yield Finding("unaccounted", f"the log of run {run} is not whole")
        yield from _run_findings(books.runs[run], [item["kind"] for item in bodies])
        own_episodes = {n: e for n, e in books.episodes.items() if e.row["run"] == run}
        yield from _steps_findings(run, bodies, own_episodes)
        yield from _episodes_findings(run, bodies, own_episodes)


def signature_findings(books: Books, trusted: Path) -> Iterator[Finding]:
    """Each checkpoint must be signed, correct, and copied; the last one must cover the whole log.

    A copy may be alone, because it is written first, and its writer may be killed.
    """
    keys = {path.stem: load_pem_public_key(path.read_bytes()) for path in trusted.glob("*.pem")}
    for run, length in sorted(books.checkpoints.keys() - books.copies.keys()):
        yield Finding("unsigned", f"run {run}: checkpoint {length} has no copy")
    for (run, length), envelope in [*books.checkpoints.items(), *books.copies.items()]:
        bodies = [body for _, body in books.log[run][:length]]
        if not _is_true(envelope, keys, run, length, _root(bodies)):
            yield Finding("unsigned", f"run {run}: checkpoint {length} is not true")
    for run, row in books.runs.items():
        if (run, row["log_length"]) not in books.checkpoints:
            yield Finding("unsigned", f"run {run}: the end of its log is not signed")


def _head(previous_head: str, number: int, step: Step) -> str:
    texts = step.row["action_digest"], step.row["observation_digest"]
    outcome = rfc8785.dumps([*step.outcome, *step.confidence]).decode()
    return digest("\n".join([previous_head, str(number), *texts, outcome]).encode())


def _texts(step: Step) -> list[tuple[str | None, str]]:
    digests = step.row["action_digest"], step.row["observation_digest"]
    return list(zip((step.action, step.observation), digests, strict=True))


def _run_findings(run: Row, kinds: list[str]) -> Iterator[Finding]:
    is_closed = run["final_weights"] is not None
    if kinds[:1] != ["run-opened"] or kinds.count("run-opened") != 1:
        yield Finding("unaccounted", f"the log of run {run['id']} does not begin once")
    if kinds.count("run-closed") != is_closed or (is_closed and kinds[-1] != "run-closed"):
        yield Finding("unaccounted", f"the log of run {run['id']} does not end as the run")


def _steps_findings(
    run: str, bodies: list[Row], own_episodes: dict[str, Episode]
) -> Iterator[Finding]:
    rows = [step.row for episode in own_episodes.values() for step in episode.steps.values()]
    by_entry: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["entry"], row["place"])):
        by_entry.setdefault(row["entry"], []).append(row)
    step_entries = {item["sequence"]: item for item in bodies if item["kind"] == "steps"}
    for entry in step_entries.keys() | by_entry.keys():
        heads = [row["head"] for row in by_entry.get(entry, [])]
        own_heads = step_entries.get(entry, {})
        if (own_heads.get("num_steps"), own_heads.get("heads")) != (
            len(heads),
            digest("\n".join(heads).encode()),
        ):
            yield Finding("unaccounted", f"entry {entry} of run {run} names other steps")


def _episodes_findings(
    run: str, bodies: list[Row], own_episodes: dict[str, Episode]
) -> Iterator[Finding]:
    opened_names = [item["episode"] for item in bodies if item["kind"] == "episode-opened"]
    closings = {item["episode"]: item for item in bodies if item["kind"] == "episode-closed"}
    if sorted(opened_names) != sorted(own_episodes):
        yield Finding("unaccounted", f"the log of run {run} names other episodes")
    for name, episode in own_episodes.items():
        reason, closing = episode.row["closed"], closings.get(name)
        if reason is None:
            yield Finding("unaccounted", f"episode {name} was never closed")
        if (closing and closing["reason"]) != reason:
            yield Finding("unaccounted", f"the log closes episode {name} otherwise")
        if closing and closing["num_steps"] != len(episode.steps):
            yield Finding("unaccounted", f"episode {name} went on after its end")


def _is_true(envelope: bytes, keys: dict[str, Any], run: str, length: int, root: str) -> bool:
    """DSSE: the signature covers the type and the payload, each preceded by its length."""
    statement = json.loads(envelope)
    payload, kind = base64.b64decode(statement["payload"]), statement["payloadType"]
    signed_bytes = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    (signature,) = statement["signatures"]
    key = keys.get(signature["keyid"])
    if not isinstance(key, Ed25519PublicKey):
        return False
    try:
        key.verify(base64.b64decode(signature["sig"]), signed_bytes)
    except InvalidSignature:
        return False
    predicate = json.loads(payload)["predicate"]
    return (predicate["run"], predicate["length"], predicate["root"]) == (run, length, root)


def _root(leaves: list[bytes]) -> str:
    """RFC 6962 section 2.1."""
    return "sha256:" + _tree(leaves).hex()


def _tree(leaves: list[bytes]) -> bytes:
    if len(leaves) <= 1:
        return hashlib.sha256(b"\x00" + leaves[0] if leaves else b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + _tree(leaves[:split]) + _tree(leaves[split:])).digest()
