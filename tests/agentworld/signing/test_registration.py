import pytest

from agentworld.errors import EvidenceError
from agentworld.signing.envelope import Subject, sign, verify
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.signing.registration import (
    PREDICATE_TYPE,
    Registration,
    check_registration,
    sign_registration,
)
from make import records

REGISTRATION = Registration(
    name="hero",
    kind="agent",
    artifact=records.digest("artifact"),
    record=records.digest("record"),
    materials=(Subject.of("agent.parent", records.digest("parent")),),
)


@pytest.fixture(scope="session")
def trusted(key_folder):
    return load_trusted(key_folder)


def test_a_statement_verifies_and_is_about_the_artifact(signer, trusted):
    envelope = sign_registration(REGISTRATION, signer)
    check_registration(REGISTRATION, envelope, trusted)
    statement = verify(envelope.encode(), trusted)
    assert statement.predicate_type == PREDICATE_TYPE
    assert statement.subject == (Subject.of("hero", REGISTRATION.artifact),)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "villain"},
        {"kind": "world-model"},
        {"artifact": records.digest("other")},
        {"record": records.digest("other")},
        {"materials": ()},
    ],
)
def test_a_statement_of_another_registration_is_refused(signer, trusted, fields):
    envelope = sign_registration(REGISTRATION.model_copy(update=fields), signer)
    with pytest.raises(EvidenceError, match="what was signed is the record"):
        check_registration(REGISTRATION, envelope, trusted)


def test_an_untrusted_key_is_refused(tmp_path, trusted):
    envelope = sign_registration(REGISTRATION, ensure_signer(tmp_path / "other"))
    with pytest.raises(EvidenceError, match="is not trusted"):
        check_registration(REGISTRATION, envelope, trusted)


def test_a_signed_statement_of_another_kind_is_refused(signer, trusted):
    with pytest.raises(EvidenceError, match="the signed content is not of kind registration"):
        check_registration(REGISTRATION, sign(records.statement(), signer).decode(), trusted)
