"""A short campaign: what `make tamper` does a thousand times."""

from contextlib import closing
from typing import get_args

import pytest

from agentworld.audit.agents import audit_agents
from agentworld.audit.everything import verify_everything
from agentworld.ledger.tables import METADATA
from agentworld.records.attestation import AttestationKind
from tamper import columns
from tamper.campaign import all_cases, of_honest, of_ledger, of_registry
from tamper.registry import REGISTRY_MUTATIONS
from tamper.story import build

pytestmark = pytest.mark.slow


def test_every_kind_of_tampering_is_found_and_named(world):
    kinds = {case.kind for case in all_cases(world)}
    told = of_ledger(world, len(kinds), "short")
    assert told.sentences == []
    assert {*told.by_kind} == kinds
    # Each column is tampered with, or is marked as none that is evidence.
    assert {f"{column.table}.{column.name}" for column in columns.evidence()} <= kinds


def test_nobody_is_accused_who_is_honest(world):
    told = of_honest(world)
    assert told.sentences == []
    assert told.records > 1_000


def test_every_kind_of_tampering_with_mlflow_is_found_and_named(tmp_path):
    told = of_registry(tmp_path / "mlflow", len(REGISTRY_MUTATIONS), "short")
    assert told.sentences == []
    assert {*told.by_kind} == {*REGISTRY_MUTATIONS}


def test_postgresql_is_tampered_with_and_what_nobody_touched_is_no_problem(tmp_path, postgres_url):
    world = build(tmp_path / "world", postgres_url)
    with closing(world.ledger()) as ledger:
        assert verify_everything(world.sources(ledger)).problems == ()
    assert of_ledger(world, 40, "short").sentences == []


def test_the_world_has_something_of_everything_that_is_evidence(world):
    with world.database.hand() as hand:
        for column in columns.evidence():
            told = hand.rows(f"SELECT DISTINCT {column.name} AS value FROM {column.table}")
            assert len(told) > 1, str(column)  # null is a value too
        kinds = {row["kind"] for row in hand.rows("SELECT kind FROM attestations")}
    assert kinds == {*get_args(AttestationKind)}
    assert {*columns.OWNER} == {*METADATA.tables}


def test_one_agent_in_use_is_to_be_validated_and_one_was(world):
    found = states(world)
    assert (found["agent-1@2"], found["agent-3@2"]) == ("revalidate", "current")
    with world.database.hand() as hand:
        hand.run("DELETE FROM attestations WHERE kind = 'validation'", ())
    assert states(world)["agent-3@2"] == "revalidate"


def states(world):
    """Of the agents in use, by their versions."""
    with closing(world.ledger()) as ledger:
        told = audit_agents(world.sources(ledger))
    return {each.agent: each.state for each in told.agents if each.in_use_as}
