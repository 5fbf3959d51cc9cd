"""A declaration matches its signed statement, and no statement of another kind."""

import pytest
from pydantic import ValidationError

from agentworld.errors import EvidenceError
from agentworld.records.statements.alias import AgentVersion, AliasChange, AliasEntry, alias_entries
from agentworld.records.statements.erasure import Erasure
from agentworld.records.statements.genesis import Genesis
from agentworld.records.statements.restore import Restore
from agentworld.signing.envelope import attest, verify_envelope, verify_row
from agentworld.signing.keys import ensure_signer, load_signer, load_trusted, rotate
from make import records

AT = "2026-03-01T00:00:00.000+00:00"
CHANGE = AliasChange(alias="stable", simulator=records.digest("old"), set_by="ada", at=AT)
AGENT_CHANGE = AliasChange(
    kind="agent",
    alias="shell-agent@production",
    simulator=records.digest("old"),
    agent=AgentVersion(version=3, artifact=records.digest("trained"), run="r"),
    set_by="ada",
    at=AT,
)
DECLARATIONS = [
    AliasEntry(change=CHANGE, previous=None),
    AliasEntry(change=AGENT_CHANGE, previous=records.digest("before")),
    Erasure(
        episode="e",
        run="r",
        simulator=records.digest("simulator"),
        opening=records.digest("opening"),
        by="ada",
        at=AT,
    ),
    Restore(run="r", lost=("r/000000000004.dsse.json",), reason="a disk", by="ada", at=AT),
    Genesis(changes=(CHANGE,), erased=("e",), at=AT),
]


@pytest.fixture
def keys(tmp_path):
    ensure_signer(tmp_path)
    return tmp_path


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda declaration: declaration.kind)
def test_statements_signed_before_and_after_a_key_rotation_verify(keys, declaration):
    before = attest(declaration, load_signer(keys))
    rotate(keys)
    after = attest(declaration, load_signer(keys))
    assert before.envelope != after.envelope
    assert before.name == after.name
    for row in (before, after):
        assert verify_row(row, type(declaration), load_trusted(keys)) == declaration


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda declaration: declaration.kind)
@pytest.mark.parametrize("column", ["name", "kind", "subject", "simulator", "run", "at"])
def test_a_row_that_differs_from_its_signed_statement_is_refused(keys, declaration, column):
    row = attest(declaration, load_signer(keys))._replace(**{column: "other"})
    with pytest.raises(EvidenceError, match="its row differs from what was signed"):
        verify_row(row, type(declaration), load_trusted(keys))


def test_a_statement_of_another_kind_is_refused(keys):
    restore = attest(DECLARATIONS[3], load_signer(keys)).envelope
    with pytest.raises(EvidenceError, match="is not of kind erasure"):
        verify_envelope(restore, Erasure, load_trusted(keys))


def test_a_statement_signed_by_an_untrusted_key_is_refused(keys, tmp_path_factory):
    signer = ensure_signer(tmp_path_factory.mktemp("stranger"))
    with pytest.raises(EvidenceError, match="is not trusted"):
        verify_envelope(attest(DECLARATIONS[0], signer).envelope, AliasEntry, load_trusted(keys))


def test_alias_statements_of_agents_and_simulators_have_separate_folders():
    simulator_entry, agent_entry = DECLARATIONS[0], DECLARATIONS[1]
    assert simulator_entry.path.startswith("alias-changes/simulator/stable/")
    assert agent_entry.path.startswith("alias-changes/agent/shell-agent/production/")
    names = ("shell-agent@production", "shell-agent@", "@", "shell@", "shell-agent", "stable")
    assert [agent_entry.is_of(name) for name in names] == [True] * 3 + [False] * 3
    assert [simulator_entry.is_of(name) for name in names] == [False] * 5 + [True]
    assert agent_entry.subject_digest == records.digest("trained")


@pytest.mark.parametrize(
    "fields", [{"kind": "simulator"}, {"agent": None}, {"alias": "stable"}], ids=str
)
def test_only_an_alias_of_an_agent_has_a_version(fields):
    with pytest.raises(
        ValidationError,
        match="an alias of an agent, NAME@ALIAS, has a version; other aliases have none",
    ):
        AliasChange.model_validate(AGENT_CHANGE.model_dump() | fields)


def test_equal_changes_of_an_alias_have_different_digests():
    other_change = CHANGE.model_copy(update={"alias": "other"})
    entries = alias_entries([CHANGE, CHANGE, other_change, CHANGE])
    assert len({entry.digest for entry in entries}) == 4
    assert [entry.previous for entry in entries] == [
        None,
        entries[0].digest,
        None,
        entries[1].digest,
    ]
