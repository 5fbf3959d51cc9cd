import json

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from in_toto_attestation.v1 import statement as in_toto
from pydantic import ValidationError

from agentworld.signing.statement import Statement, Subject
from make import records

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=3),
    max_leaves=8,
)
PREDICATES = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4)


@pytest.mark.compute
@given(PREDICATES)
def test_a_statement_comes_back_from_its_canonical_bytes(predicate):
    statement = records.statement(**predicate)
    read = Statement.parse(statement.canonical)
    assert read == statement
    assert read.canonical == statement.canonical


@pytest.mark.compute
@given(PREDICATES)
def test_in_toto_reads_and_accepts_a_statement(predicate):
    statement = records.statement(**predicate)
    read = json_format.Parse(statement.canonical, in_toto.spb.Statement())
    in_toto.Statement.copy_from_pb(read).validate()
    (subject,) = read.subject
    assert (subject.name, dict(subject.digest)) == ("log", statement.subject[0].digests)
    assert json_format.MessageToDict(read.predicate) == predicate


def test_the_order_of_keys_is_no_part_of_a_statement():
    assert records.statement(a=1, b=2).canonical == records.statement(b=2, a=1).canonical


def test_a_digest_of_ours_is_named_by_its_algorithm():
    digest = records.digest("weights")
    assert Subject.of("model", digest).digests == {"sha256": digest.removeprefix("sha256:")}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("_type", "https://in-toto.io/Statement/v0.1"),
        ("subject", []),
        ("subject", [{"name": "log", "digest": {}}]),
        ("subject", [{"name": "log", "digest": {"sha256": "no hexadecimal"}}]),
        ("predicateType", ""),
        ("predicate", {}),
        ("more", 1),
    ],
)
def test_what_is_no_statement_is_refused(field, value):
    wrong = {**json.loads(records.statement().canonical), field: value}
    with pytest.raises(ValidationError):
        Statement.parse(json.dumps(wrong).encode())


def test_only_in_totos_own_keys_are_read():
    form = json.loads(records.statement().canonical)
    form["predicate_type"] = form.pop("predicateType")
    with pytest.raises(ValidationError):
        Statement.parse(json.dumps(form).encode())
