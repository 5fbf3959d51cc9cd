"""A short version of the campaign that `make tamper` runs."""

from contextlib import closing

import pytest

from agentworld.audit.checks.store import verify_everything
from agentworld.audit.questions.agents import audit_agents
from agentworld.ledger.tables import METADATA
from agentworld.records.statements.base import statement_kinds
from campaigns.tamper import columns
from campaigns.tamper.campaign import LEDGER_MUTATIONS, of_honest, of_ledger, of_registry
from campaigns.tamper.registry import REGISTRY_MUTATIONS
from campaigns.tamper.story import build

pytestmark = pytest.mark.compute


def test_every_kind_of_tampering_is_found_and_named(world):
    report = of_ledger(world, len(LEDGER_MUTATIONS), "short")
    assert report.sentences == []
    assert report.by_kind == dict.fromkeys(LEDGER_MUTATIONS, 1)
    # Each column is tampered with, or marked as no evidence.
    assert {str(column) for column in columns.EVIDENCE} <= {*LEDGER_MUTATIONS}


def test_honest_records_have_no_findings(world):
    report = of_honest(world)
    assert report.sentences == []
    assert report.records > 1_000


def test_every_kind_of_tampering_with_mlflow_is_found_and_named(tmp_path):
    report = of_registry(tmp_path / "mlflow", len(REGISTRY_MUTATIONS), "short")
    assert report.sentences == []
    assert report.by_kind == dict.fromkeys(REGISTRY_MUTATIONS, 1)


def test_tampering_with_postgresql_is_found_and_an_untouched_ledger_has_no_problem(
    tmp_path, postgres_url
):
    world = build(tmp_path / "world", postgres_url)
    with closing(world.ledger()) as ledger:
        assert verify_everything(world.sources(ledger)).problems == ()
    assert of_ledger(world, 8, "short").sentences == []


def test_the_test_world_contains_every_kind_of_evidence(world):
    with world.database.hand() as hand:
        for column in columns.EVIDENCE:
            distinct_rows = hand.rows(f"SELECT DISTINCT {column.name} AS value FROM {column.table}")
            assert len(distinct_rows) > 1, str(column)  # null is a value too
        kinds = {row["kind"] for row in hand.rows("SELECT kind FROM attestations")}
    assert kinds == {*statement_kinds()}
    assert {*columns.OWNER} == {*METADATA.tables}


def test_one_agent_in_use_needs_revalidation_and_another_agent_is_current(world):
    agent_states = states(world)
    assert (agent_states["agent-1@2"], agent_states["agent-3@2"]) == ("revalidate", "current")
    with world.database.hand() as hand:
        hand.run("DELETE FROM attestations WHERE kind = 'validation'", ())
    assert states(world)["agent-3@2"] == "revalidate"


def states(world):
    """The states of the agents in use, by version."""
    with closing(world.ledger()) as ledger:
        audit = audit_agents(world.sources(ledger))
    return {agent.agent: agent.state for agent in audit.agents if agent.in_use_as}
