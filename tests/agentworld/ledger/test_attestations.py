import pytest

from agentworld.errors import Conflict
from agentworld.records.attestation import Attestation
from make.ledger import OPENING, SIMULATOR

ATTESTATION = Attestation("agent-edges/r/1", "edge", "artifact", "simulator", "r", "now", b"signed")


def test_attestations_are_found_by_kind_simulator_run_and_subject(ledger):
    other = ATTESTATION._replace(name="agent-edges/q/1", run="q", subject="another")
    for attestation in (ATTESTATION, other):
        ledger.attestations.add(attestation)
    assert ledger.attestations.find("edge") == [ATTESTATION, other]
    assert ledger.attestations.find("edge", simulator="simulator") == [ATTESTATION, other]
    assert ledger.attestations.find("edge", run="q") == [other]
    assert ledger.attestations.find("edge", subject="artifact", run="q") == []


def test_an_attestation_name_can_be_used_only_once(ledger):
    ledger.attestations.add(ATTESTATION)
    with pytest.raises(Conflict):
        ledger.attestations.add(ATTESTATION._replace(envelope=b"another"))
    assert ledger.attestations.find("edge") == [ATTESTATION]


def test_attestations_are_found_by_kind_and_name_prefix(ledger):
    for name in ("a/b/1", "a/b/2", "A/b/1", "a/bc/1", "a_b/1"):
        ledger.attestations.add(ATTESTATION._replace(name=name, kind="alias"))
    attestations = ledger.attestations.find_under("alias", "a/b/")
    assert [attestation.name for attestation in attestations] == ["a/b/1", "a/b/2"]
    assert [row.name for row in ledger.attestations.find_under("alias", "a_b")] == ["a_b/1"]
    assert ledger.attestations.find_under("edge", "a/b/") == []


def test_first_entry_returns_the_first_log_entry_of_a_run_or_nothing(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    assert ledger.logs.first_entry(run) == ledger.logs.entries(run)[0].fields
    assert ledger.logs.first_entry("nobody's") == {}
