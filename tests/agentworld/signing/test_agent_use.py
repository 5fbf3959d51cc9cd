import pytest

from agentworld.errors import EvidenceError
from agentworld.records.agent_use import AgentUse
from agentworld.signing.agent_use import agent_use_name, read_agent_use, sign_agent_use
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
    return sign_agent_use(MADE, ensure_signer(tmp_path)), load_trusted(tmp_path)


def test_what_was_signed_is_read_again(signed):
    kept, trusted = signed
    assert read_agent_use(kept, trusted) == MADE
    assert (kept.kind, kept.subject, kept.name) == (
        "agent-use",
        MADE.artifact,
        "agent-uses/shell-agent/production/000001.dsse.json",
    )


@pytest.mark.parametrize("column", ["name", "subject", "simulator", "run", "at"])
def test_a_row_that_says_something_else_than_its_envelope_is_no_deployment(signed, column):
    kept, trusted = signed
    with pytest.raises(EvidenceError, match="its row says something else"):
        read_agent_use(kept._replace(**{column: "another"}), trusted)


def test_what_a_stranger_signed_is_no_deployment(signed, tmp_path):
    _, trusted = signed
    strange = sign_agent_use(MADE, ensure_signer(tmp_path / "strange"))
    with pytest.raises(EvidenceError):
        read_agent_use(strange, trusted)


def test_an_envelope_of_something_else_is_no_deployment(signed, tmp_path):
    from agentworld.signing.envelope import sign

    kept, trusted = signed
    other = sign(records.statement(length=3), ensure_signer(tmp_path))
    with pytest.raises(EvidenceError, match="what was signed is no use of an agent"):
        read_agent_use(kept._replace(envelope=other), trusted)


def test_names_have_the_order_of_their_numbers():
    names = [agent_use_name(MADE.model_copy(update={"number": n})) for n in (2, 10, 999_999)]
    assert names == sorted(names)
