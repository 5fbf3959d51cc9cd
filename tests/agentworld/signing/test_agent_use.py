import pytest

from agentworld.errors import EvidenceError
from agentworld.records.statements.agent_use import AgentUse
from agentworld.signing.attestation import attest, verify_row
from agentworld.signing.keys import ensure_signer, load_trusted
from make import records

MADE = AgentUse(
    name="shell-agent",
    alias="production",
    number=1,
    version=3,
    artifact=records.digest("trained"),
    run="r",
    simulator=records.digest("simulator"),
    by="ada",
    at="2026-01-01T00:00:00.000+00:00",
)


@pytest.fixture
def signed(tmp_path):
    return attest(MADE, ensure_signer(tmp_path)), load_trusted(tmp_path)


def test_what_was_signed_is_read_again(signed):
    kept, trusted = signed
    assert verify_row(kept, AgentUse, trusted) == MADE
    assert (kept.kind, kept.subject, kept.name) == (
        "agent-use",
        MADE.artifact,
        "agent-uses/shell-agent/production/000001.dsse.json",
    )


@pytest.mark.parametrize("column", ["name", "subject", "simulator", "run", "at"])
def test_a_row_that_says_something_else_than_its_envelope_is_no_deployment(signed, column):
    kept, trusted = signed
    with pytest.raises(EvidenceError, match="its row says something else"):
        verify_row(kept._replace(**{column: "another"}), AgentUse, trusted)


def test_what_a_stranger_signed_is_no_deployment(signed, tmp_path):
    _, trusted = signed
    strange = attest(MADE, ensure_signer(tmp_path / "strange"))
    with pytest.raises(EvidenceError):
        verify_row(strange, AgentUse, trusted)


def test_an_envelope_of_something_else_is_no_deployment(signed, tmp_path):
    from agentworld.signing.envelope import sign

    kept, trusted = signed
    other = sign(records.statement(length=3), ensure_signer(tmp_path))
    with pytest.raises(EvidenceError, match="what was signed is no use of an agent"):
        verify_row(kept._replace(envelope=other), AgentUse, trusted)


def test_names_have_the_order_of_their_numbers():
    names = [MADE.model_copy(update={"number": n}).path for n in (2, 10, 999_999)]
    assert names == sorted(names)
