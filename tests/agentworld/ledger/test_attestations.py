import pytest

from agentworld.errors import Conflict
from agentworld.records.attestation import Attestation

MADE = Attestation("agent-edges/r/1", "edge", "artifact", "simulator", "r", "now", b"signed")


def test_what_was_signed_is_found_by_what_it_is_about(ledger):
    other = MADE._replace(name="agent-edges/q/1", run="q", subject="another")
    for each in (MADE, other):
        ledger.attestations.add(each)
    assert ledger.attestations.find("edge") == [MADE, other]
    assert ledger.attestations.find("edge", simulator="simulator") == [MADE, other]
    assert ledger.attestations.find("edge", run="q") == [other]
    assert ledger.attestations.find("edge", subject="artifact", run="q") == []


def test_a_name_is_given_once(ledger):
    ledger.attestations.add(MADE)
    with pytest.raises(Conflict):
        ledger.attestations.add(MADE._replace(envelope=b"another"))
    assert ledger.attestations.find("edge") == [MADE]
