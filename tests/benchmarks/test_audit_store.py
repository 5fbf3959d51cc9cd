"""What the audit's benchmark is asked about: it must be what a service would have written."""

import pytest

import make_ledger
from agentworld.audit.chain import audit_agent
from agentworld.audit.sources import Sources
from agentworld.audit.touched import audit_simulator
from agentworld.audit.verify import verify_run
from agentworld.ledger import Ledger
from agentworld.lineage.mlflow import MlflowRegistry
from benchmarks.audit_ledger import NUM_STEPS, Book, SqliteSink
from benchmarks.audit_store import AuditStore, Size

pytestmark = pytest.mark.slow


def test_what_is_written_in_bulk_verifies_and_is_proven(tmp_path):
    url = make_ledger.laid(f"sqlite:///{tmp_path}/ledger.db")
    of = AuditStore(tmp_path, Book(SqliteSink(url)))
    large = of.grow(Size(simulators=2, agents=5, episodes=400))
    sources = Sources(
        MlflowRegistry(f"sqlite:///{tmp_path}/mlflow.db"), Ledger(url), tmp_path, of.evidence
    )
    for run in [*of.runs, large.run.id]:
        assert verify_run(run, sources.ledger, of.evidence).problems == ()
        assert sources.ledger.counted_run(run) == sources.ledger.run(run)
    for ref in of.agents:
        chain = audit_agent(ref, sources)
        assert chain.edge
        assert (chain.edge.grade, chain.breaks) == ("proven", ())
    touched = [audit_simulator(each, sources) for each in of.simulators]
    assert {made.agent for each in touched for made in each.agents} == set(map(str, of.agents))
    assert sum(made.run.num_steps for each in touched for made in each.agents) == 360 * NUM_STEPS
