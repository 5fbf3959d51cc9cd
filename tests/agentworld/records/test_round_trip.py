"""A number in a record stays the same when the record is written, signed and read, or is refused
when it is set.
"""

import importlib
import json
import pkgutil

import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import agentworld.records
import agentworld.signing
from agentworld.errors import InputError
from agentworld.records.base import Record, canonical_json
from agentworld.records.episode import EpisodeOpening
from agentworld.records.statements.base import statement_kinds
from agentworld.records.tool import Tool
from agentworld.signing.checkpoint import RunCheckpoint, sign_checkpoint, verify_checkpoint
from agentworld.signing.envelope import attest, verify_row
from agentworld.signing.keys import ensure_signer, load_trusted
from make.any_record import fields_of


def record_types() -> list[type[Record]]:
    """All types of records in the packages that define stored and signed data."""
    for package in (agentworld.records, agentworld.signing):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    all_types, pending = set(), [Record]
    while pending:
        subclasses = pending.pop().__subclasses__()
        pending += subclasses
        all_types |= {kind for kind in subclasses if kind.__module__.startswith("agentworld.")}
    prefixes = ("agentworld.records.", "agentworld.signing.")
    stored_types = [kind for kind in all_types if kind.__module__.startswith(prefixes)]
    return sorted(stored_types, key=lambda kind: (kind.__module__, kind.__name__))


RECORDS = [kind for kind in record_types() if not getattr(kind, "__abstractmethods__", None)]

SIGNED = {
    **{
        kind: (attest, lambda row, trusted, kind=kind: verify_row(row, kind, trusted))
        for kind in statement_kinds().values()
    },
    RunCheckpoint: (sign_checkpoint, verify_checkpoint),
}
"""Functions that sign a record, and read it back."""

FEW = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def draw_record(kind: type[Record], data: st.DataObject) -> Record | None:
    """A random record of a type; null if its values are refused."""
    fields = data.draw(fields_of(kind))
    if kind is Tool:
        fields["input_schema"]["type"] = "object"
    try:
        return kind.model_validate(fields)
    except ValidationError:
        return None


@pytest.mark.compute
@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_a_record_is_the_same_after_it_was_written_and_read(kind, data):
    record = draw_record(kind, data)
    if record is None:
        return
    assert kind.model_validate_json(record.model_dump_json()) == record
    try:
        canonical = record.canonical
    except InputError:  # refused before anything of it is stored
        return
    restored = kind.model_validate_json(canonical)
    assert (restored, restored.canonical) == (record, canonical)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return ensure_signer(folder), load_trusted(folder)


@pytest.mark.compute
@pytest.mark.parametrize("kind", SIGNED, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_a_signed_record_is_read_back_unchanged(kind, keys, data):
    sign, read = SIGNED[kind]
    signer, trusted = keys
    record = draw_record(kind, data)
    if record is None:
        return
    try:
        signed = sign(record, signer)
    except InputError:
        return
    assert read(signed, trusted) == record


@pytest.mark.parametrize("number", [-6.501161575064481e16, 1e17, 2.0**53, 2**53, 10**17, -0.0])
def test_an_opening_with_a_large_number_in_a_tool_schema_is_read_back_unchanged(number):
    tool = Tool(name="a", input_schema={"type": "object", "maximum": number})
    opening = EpisodeOpening(run="r", tools=(tool,))
    restored = EpisodeOpening.model_validate_json(opening.text)
    assert (restored, restored.text) == (opening, opening.text)


@pytest.mark.parametrize("number", [2**53 + 1, -(10**17) - 1, 10**21, 10**400])
def test_an_integer_that_is_not_a_double_has_no_canonical_json(number):
    with pytest.raises(InputError, match="has no canonical JSON"):
        canonical_json({"number": number})


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1))
def test_canonical_json_that_is_read_and_written_again_stays_the_same(number):
    canonical = canonical_json([number])
    assert canonical_json(json.loads(canonical)) == canonical


_TEXTS = st.text(st.characters() | st.sampled_from("\ue000\uffff\U00010000\U0010ffff\ud800"))


@pytest.mark.compute
@FEW
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats() | _TEXTS,
        lambda values: st.lists(values) | st.dictionaries(_TEXTS, values),
        max_leaves=12,
    )
)
def test_canonical_json_has_the_bytes_of_rfc8785(value):
    try:
        expected = rfc8785.dumps(json.loads(json.dumps(value)))
    except ValueError:
        expected = None
    try:
        assert canonical_json(value) == expected
    except InputError:
        assert expected is None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_records_reject_nan_and_infinity(kind, number):
    floats = [
        name
        for name, field in kind.model_fields.items()
        if field.annotation in (float, float | None)
    ]
    for name in floats:
        with pytest.raises(ValidationError) as error:
            kind.model_validate({name: number})
        assert (name, "finite_number") in {
            (problem["loc"][0], problem["type"]) for problem in error.value.errors()
        }
