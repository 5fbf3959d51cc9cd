"""An error in data becomes one sentence; an error that a retry may solve is raised unchanged."""

import json
from functools import partial
from pathlib import Path

import pytest

from agentworld.errors import EvidenceError, InputError, NotFound, StoreError
from agentworld.records.base import Digest, Record, Sentence, digest_json
from agentworld.records.garbled import read_each, read_list, readable, reading, redact


class ExampleRecord(Record):
    """A record."""

    digest_of: Digest


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (partial(json.loads, "[" * 200_000), "it is nested too deeply"),
        (partial(json.loads, "{"), "it is not JSON"),
        (b"\xff".decode, "a text in it is not valid Unicode"),
        (partial(int, "one"), "a value in it is missing or has another type"),
        (lambda: None + 1, "a value in it is missing or has another type"),
        (lambda: {}["at"], "a value in it is missing or has another type"),
        (lambda: (1 << 70).to_bytes(8), "a number in it is too large"),
        (lambda: Path("/nowhere").read_bytes(), "No such file"),
        (lambda: digest_json(2**63), "exceeds safe integer domain"),
        (lambda: ExampleRecord(digest_of="x"), "digest_of: String should match pattern"),
        (lambda: ExampleRecord(digest_of=[10**5_000]), "(got 'a list')"),
    ],
)
def test_any_error_in_garbled_data_becomes_an_evidence_error(work, message):
    with (
        pytest.raises(EvidenceError, match=r"^the row of ada is garbled: ") as error,
        reading("the row of ada"),
    ):
        work()
    assert message in str(error.value)


@pytest.mark.parametrize(
    "error", [NotFound("there is none"), EvidenceError("told"), StoreError("busy")]
)
def test_not_found_evidence_and_store_errors_are_raised_unchanged(error):
    with pytest.raises(type(error)) as exc_info, reading("a row"):
        raise error
    assert exc_info.value is error


def test_problems_before_a_garbled_row_are_reported_too():
    def problems():
        yield "the first"
        raise InputError("it is none")

    assert [*readable("a row", problems())] == ["the first", "a row is garbled: it is none"]


def test_a_store_error_ends_the_reading():
    def problems():
        yield "the first"
        raise StoreError("the disk is busy")

    with pytest.raises(StoreError):
        list(readable("a row", problems()))


def test_a_garbled_item_does_not_prevent_reading_the_others():
    def read(number: int) -> int:
        if number < 0:
            raise NotFound("there is no such number")
        with reading(f"number {number}"):
            return 6 // number

    values, problems = read_each([3, 0, -1, 2], read)
    assert values == [2, 3]
    assert problems[0].startswith("number 0 is garbled: ")
    assert problems[1:] == ["there is no such number"]


def test_an_unreadable_list_is_empty_and_reported_as_a_problem():
    assert read_list("a list", lambda: [1]) == ([1], [])
    values, (problem,) = read_list("a list", lambda: [int("x")])
    assert (values, problem.partition(":")[0]) == ([], "a list is garbled")


class SentenceRecord(Record):
    """A record with a sentence."""

    problem: Sentence


def test_a_sentence_escapes_surrogates_and_shortens_long_text():
    record = SentenceRecord(problem=f"the name '\udcff' and {'x' * 10_000}")
    assert record.model_dump_json().startswith('{"problem":"the name \'\\\\udcff\' and xxx')
    assert record.problem.endswith("... (10,017 characters)")
    assert SentenceRecord(problem="\u0430 is fine").problem == "\u0430 is fine"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://anna:hidden@host:5432/db", "postgresql://anna:***@host:5432/db"),
        ("postgresql+psycopg://:hidden@/db", "postgresql+psycopg://:***@/db"),
        ("ftp://anna:hid@den/hid:den@host", "ftp://anna:***@host"),
        ("x://host/db?password=hidden&sslmode=require", "x://host/db?password=***&sslmode=require"),
        ("x://host/db?sslmode=a&sslPassword=hidden", "x://host/db?sslmode=a&sslPassword=***"),
        ("s3://bucket/a?aws_secret_access_key=hidden", "s3://bucket/a?aws_secret_access_key=***"),
        ("s3://b/a?X-Amz-Signature=hidden&v=1", "s3://b/a?X-Amz-Signature=***&v=1"),
        ("s3://b/a?X-Amz-Credential=hidden", "s3://b/a?X-Amz-Credential=***"),
        ("s3://b/a?X-Amz-Security-Token=hidden", "s3://b/a?X-Amz-Security-Token=***"),
        ("gs://b/a?X-Goog-Signature=hidden", "gs://b/a?X-Goog-Signature=***"),
        ("gs://b/a?X-Goog-Credential=hidden", "gs://b/a?X-Goog-Credential=***"),
        ("az://b/a?sv=1&sig=hidden&se=2", "az://b/a?sv=1&sig=***&se=2"),
        ("x://b/a?design=plain", "x://b/a?design=plain"),
        ("anna:hidden@host/db", "anna:***@host/db"),
        ("http//run:hidden@host", "http//run:***@host"),
        ("no address: 'run:hidden@host'", "no address: 'run:***@host'"),
        ("cannot reach ftp://anna:hidden@host now", "cannot reach ftp://anna:***@host now"),
        ("sqlite:////folder/ledger.db", "sqlite:////folder/ledger.db"),
        ("/folder/a@b:c", "/folder/a@b:c"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, expected):
    assert redact(address) == expected
