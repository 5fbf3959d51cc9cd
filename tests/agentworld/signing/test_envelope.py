import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from in_toto_attestation.v1 import statement as in_toto
from pydantic import ValidationError
from securesystemslib.dsse import Envelope

from agentworld.errors import EvidenceError
from agentworld.records.base import Record
from agentworld.signing.envelope import (
    PAYLOAD_TYPE,
    Statement,
    Subject,
    read_predicate,
    read_unverified,
    sign,
    verify,
)
from agentworld.signing.keys import ensure_signer, load_trusted
from make import records

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=3),
    max_leaves=8,
)
PREDICATES = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4)


@pytest.fixture(scope="session")
def trusted(key_folder):
    return load_trusted(key_folder)


@pytest.fixture(scope="session")
def envelope(signer):
    return sign(records.statement(), signer)


def flip_bit(data: bytes, index: int, bit: int) -> bytes:
    return data[:index] + bytes([data[index] ^ (1 << bit)]) + data[index + 1 :]


def to_json(form: object) -> bytes:
    """Canonical JSON, so that a form is refused for its content."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sign_raw(payload: bytes, signer, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """A correctly signed envelope of any payload."""
    dsse_envelope = Envelope(payload, payload_type, {})
    dsse_envelope.sign(signer)
    return to_json(dsse_envelope.to_dict())


@given(st.integers(0, 2**53 - 1), st.text(st.characters(exclude_categories=["Cs"])))
def test_verifying_a_signed_statement_returns_the_same_statement(signer, trusted, number, text):
    statement = records.statement(number=number, text=text)
    assert verify(sign(statement, signer), trusted) == statement


def test_the_signature_covers_the_dsse_encoding_of_the_payload(signer, envelope):
    form = json.loads(envelope)
    payload = base64.b64decode(form["payload"])
    signature = base64.b64decode(form["signatures"][0]["sig"])
    encoding = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer.public_key.keyval["public"]))
    key.verify(signature, encoding)
    assert payload == records.statement().canonical


@pytest.mark.compute
@given(st.data())
def test_a_flipped_bit_of_the_payload_or_the_signature_is_refused(envelope, trusted, data):
    form = json.loads(envelope)
    parent, key = data.draw(st.sampled_from([(form, "payload"), (form["signatures"][0], "sig")]))
    decoded = base64.b64decode(parent[key])
    index, bit = data.draw(st.integers(0, len(decoded) - 1)), data.draw(st.integers(0, 7))
    parent[key] = base64.b64encode(flip_bit(decoded, index, bit)).decode()
    with pytest.raises(EvidenceError, match="the signature is not that of the key"):
        verify(to_json(form), trusted)


@given(st.data())
def test_a_flipped_bit_anywhere_in_an_envelope_is_refused(envelope, trusted, data):
    index, bit = data.draw(st.integers(0, len(envelope) - 1)), data.draw(st.integers(0, 7))
    with pytest.raises(EvidenceError):
        verify(flip_bit(envelope, index, bit), trusted)


def test_a_noncanonical_base64_encoding_of_the_signature_is_refused(envelope, trusted):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    form = json.loads(envelope)
    signature = form["signatures"][0]["sig"]
    # 64 bytes leave four bits of the last letter unused.
    other_signature = signature[:-3] + letters[letters.index(signature[-3]) ^ 1] + "=="
    assert base64.b64decode(other_signature) == base64.b64decode(signature)
    form["signatures"][0]["sig"] = other_signature
    with pytest.raises(EvidenceError, match="it is not in canonical form"):
        verify(to_json(form), trusted)


def test_an_untrusted_key_is_refused_by_its_id(tmp_path, trusted):
    other = ensure_signer(tmp_path)
    with pytest.raises(EvidenceError, match=f"the key '{other.public_key.keyid}' is not trusted"):
        verify(sign(records.statement(), other), trusted)


def test_a_trusted_key_id_with_the_signature_of_another_key_is_refused(tmp_path, signer, trusted):
    other = ensure_signer(tmp_path)
    forgery = sign(records.statement(), other).replace(
        other.public_key.keyid.encode(), signer.public_key.keyid.encode()
    )
    with pytest.raises(EvidenceError, match="the signature is not that of the key"):
        verify(forgery, trusted)


def test_read_unverified_accepts_unknown_keys_and_rejects_forged_trusted_keys(
    tmp_path, signer, trusted
):
    other = ensure_signer(tmp_path)
    envelope = sign(records.statement(), other)
    assert read_unverified(envelope, trusted) == records.statement()
    forgery = envelope.replace(other.public_key.keyid.encode(), signer.public_key.keyid.encode())
    with pytest.raises(EvidenceError, match="the signature is not that of the key"):
        read_unverified(forgery, trusted)


NO_ENVELOPES = {
    "nothing": lambda form: b"",
    "no object": lambda form: b"[]",
    "no text": lambda form: b"\xff",
    "endless": lambda form: b"[" * 100_000,
    "no payload": lambda form: {key: form[key] for key in form if key != "payload"},
    "no base64": lambda form: {**form, "payload": "="},
    "no ASCII": lambda form: {**form, "payload": "\u00e9"},
    "no signature": lambda form: {**form, "signatures": []},
    "two signatures": lambda form: {**form, "signatures": 2 * form["signatures"]},
    "more keys": lambda form: {**form, "more": 1},
    "another form": lambda form: json.dumps(form, indent=1).encode(),
}


@pytest.mark.parametrize("change", NO_ENVELOPES.values(), ids=NO_ENVELOPES.keys())
def test_an_invalid_envelope_is_refused(envelope, trusted, change):
    changed_form = change(json.loads(envelope))
    data = changed_form if isinstance(changed_form, bytes) else to_json(changed_form)
    with pytest.raises(EvidenceError, match="not an envelope of ours"):
        verify(data, trusted)


def test_a_signed_payload_of_another_type_is_refused(signer, trusted):
    with pytest.raises(
        EvidenceError, match=r"type is 'text/plain' instead of application/vnd\.in-toto"
    ):
        verify(sign_raw(records.statement().canonical, signer, "text/plain"), trusted)


@pytest.mark.parametrize("payload", [b"", b"{}", b'{"_type":"https://in-toto.io/Statement/v0.1"}'])
def test_a_signed_payload_that_is_not_a_statement_is_refused(signer, trusted, payload):
    with pytest.raises(EvidenceError, match="is not an in-toto statement"):
        verify(sign_raw(payload, signer), trusted)


class Length(Record):
    length: int


def wrap(record: Length, key: str = "") -> Statement:
    predicate = record.model_dump()
    return records.statement(**({key: predicate, "beside": 1} if key else predicate))


@pytest.mark.parametrize("key", ["", "told"])
def test_read_predicate_returns_the_record_of_a_matching_statement(key):
    record = Length(length=3)
    statement = wrap(record, key)
    assert read_predicate(statement, Length, "word", lambda value: wrap(value, key), key) == record


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (records.statement(width=3), "the signed content is not of kind word"),
        (records.statement(length="long"), "the signed content is not of kind word"),
        (
            records.statement(length=3).model_copy(update={"predicate_type": "urn:other"}),
            "the signed content differs from this word",
        ),
        (
            records.statement(length=3).model_copy(
                update={"subject": (Subject.of("x", records.digest("x")),)}
            ),
            "the signed content differs from this word",
        ),
    ],
)
def test_a_statement_of_another_kind_or_another_subject_is_refused(statement, message):
    with pytest.raises(EvidenceError, match=message):
        read_predicate(statement, Length, "word", wrap)


@pytest.mark.compute
@given(PREDICATES)
def test_a_statement_is_read_back_from_its_canonical_bytes(predicate):
    statement = records.statement(**predicate)
    restored = Statement.parse(statement.canonical)
    assert restored == statement
    assert restored.canonical == statement.canonical


@pytest.mark.compute
@given(PREDICATES)
def test_the_in_toto_library_accepts_a_statement(predicate):
    statement = records.statement(**predicate)
    parsed = json_format.Parse(statement.canonical, in_toto.spb.Statement())
    in_toto.Statement.copy_from_pb(parsed).validate()
    (subject,) = parsed.subject
    assert (subject.name, dict(subject.digest)) == ("log", statement.subject[0].digests)
    assert json_format.MessageToDict(parsed.predicate) == predicate


def test_the_order_of_keys_does_not_change_the_canonical_bytes():
    assert records.statement(a=1, b=2).canonical == records.statement(b=2, a=1).canonical


def test_the_digest_of_a_subject_is_keyed_by_its_algorithm():
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
def test_an_invalid_statement_is_refused(field, value):
    form = {**json.loads(records.statement().canonical), field: value}
    with pytest.raises(ValidationError):
        Statement.parse(json.dumps(form).encode())


def test_a_statement_with_a_snake_case_key_is_refused():
    form = json.loads(records.statement().canonical)
    form["predicate_type"] = form.pop("predicateType")
    with pytest.raises(ValidationError):
        Statement.parse(json.dumps(form).encode())
