"""An agent's edge from its registration on: the signed statement, and tampering with it."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

import make.service
from agentworld.audit.checks.edges import UNSIGNED_ORIGIN, EdgeAudit, edge_to
from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.ledger import open_evidence
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, current_key, ensure_signer, rotate
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.storage.stores import Stores
from make import records
from make.template import copied

STARTED, FINAL = records.digest("started"), records.digest("made")


class Scene(NamedTuple):
    """An agent that was trained at a service, and is registered."""

    store: Path
    sources: Sources
    agent: Agent

    def audit(self) -> EdgeAudit:
        audit = edge_to("shell-agent", self.agent, self.sources)
        assert audit
        return audit

    def change(self, statement: str) -> None:
        """Changes the database as an attacker would."""
        with closing(sqlite3.connect(self.store / "ledger.db")) as database, database:
            assert database.execute(statement).rowcount != 0


async def train(service: make.service.Service, *, sign: bool, again: bool) -> SignedEdge:
    client = service.client()
    run = await client.open_run(RunOpening(agent="shell-agent", starting_weights=STARTED))
    await client.step(await client.reset(records.task()), "ls")
    signature = None
    if sign:
        weights = RunWeights(run=run.id, simulator=run.simulator, weights=FINAL)
        signature = sign_weights(weights, ensure_signer(Stores.of(service.store).keys / STEP_KEYS))
    await client.close_run(FINAL, signature)
    claim = Claim(
        agent="shell-agent", artifact=FINAL, starting_weights=STARTED, simulator=run.simulator
    )
    edge = await client.attest(claim)
    if again:
        assert await client.attest(claim) == edge
    await client.close()
    return edge


def copy_scene(store: Path, *, sign: bool = True, again: bool = False) -> Scene:
    return copied(build_scene, store, sign=sign, again=again)


def build_scene(store: Path, *, sign: bool, again: bool) -> Scene:
    service = make.service.service(store)
    edge = asyncio.run(train(service, sign=sign, again=again))
    checkpoint = records.checkpoint(
        "agent", artifact=FINAL, parents=[STARTED], simulator=service.simulator
    )
    agent = Agent(checkpoint=checkpoint, run=edge.edge.run, edge=edge)
    registry = MemoryRegistry()
    registry.register_agent("shell-agent", agent, store)
    sources = Sources(registry, make.service.ledger(store), store, open_evidence(store))
    return Scene(store, sources, agent)


def with_current_keys(scene: Scene) -> Scene:
    return scene._replace(sources=scene.sources._replace(evidence=open_evidence(scene.store)))


@pytest.mark.parametrize(("sign", "grade"), [(True, "proven"), (False, "observed")])
def test_the_service_signs_which_simulator_made_an_agent(tmp_path, sign, grade):
    scene = copy_scene(tmp_path, sign=sign)
    audit = scene.audit()
    assert (audit.grade, audit.problems) == (grade, ())
    assert audit.signature.signed_at == audit.signature.ledger_at == audit.edge.at
    assert audit.signature.key == current_key(Stores.of(scene.store).keys / SIMULATOR_KEYS)
    assert audit.edge
    assert (audit.edge.traffic.num_episodes, audit.edge.traffic.num_steps) == (1, 1)
    assert audit.edge.claim.artifact == FINAL


def test_the_same_claim_is_signed_once(tmp_path):
    scene = copy_scene(tmp_path, again=True)
    assert len(scene.sources.ledger.attestations.find("edge")) == 1


def test_an_audit_at_an_earlier_time_ignores_an_edge_signed_later(tmp_path):
    scene = copy_scene(tmp_path)
    signing_time = datetime.fromisoformat(scene.audit().edge.at)
    earlier = scene._replace(sources=scene.sources.as_of(signing_time - timedelta(milliseconds=1)))
    assert (earlier.audit().edge, earlier.audit().problems) == (None, (UNSIGNED_ORIGIN,))
    assert scene._replace(sources=scene.sources.as_of(signing_time)).audit() == scene.audit()


def test_verifying_a_broken_run_record_lowers_the_agents_grade_to_disputed(tmp_path):
    scene, ref = copy_scene(tmp_path), VersionRef(name="shell-agent", version=1)
    assert audit_agent(ref, scene.sources, verify=True).grade == "proven"
    scene.change("UPDATE steps SET reward = 1.0")
    grades = [audit_agent(ref, scene.sources, verify=verify).grade for verify in (False, True)]
    assert grades == ["proven", "disputed"]
    assert audit_agent(ref, scene.sources._replace(evidence=None)).grade == "unsigned"


def test_the_edge_of_a_run_closed_during_the_audit_is_not_disputed(tmp_path):
    scene = copy_scene(tmp_path)
    run = scene.sources.ledger.run(scene.agent.run).model_copy(update={"closing": None})
    assert edge_to("shell-agent", scene.agent, scene.sources, run) == scene.audit()


def test_an_edge_signed_with_a_rotated_key_is_still_proven(tmp_path):
    scene = copy_scene(tmp_path)
    rotate(Stores.of(tmp_path).keys / "simulator")
    assert with_current_keys(scene).audit().grade == "proven"


def test_an_edge_is_disputed_once_its_step_key_is_no_longer_trusted(tmp_path):
    scene = copy_scene(tmp_path)
    step_keys = Stores.of(tmp_path).keys / STEP_KEYS
    rotate(step_keys)
    assert with_current_keys(scene).audit().grade == "proven"
    (old_key,) = {*(step_keys / "trusted").iterdir()} - {
        step_keys / "trusted" / f"{current_key(step_keys)}.pem"
    }
    old_key.unlink()
    audit = with_current_keys(scene).audit()
    assert audit.grade == "disputed"
    assert [reason for reason in audit.problems if "is not signed by the step" in reason]


def test_a_missing_closing_signature_of_the_run_is_a_problem_of_its_edge(tmp_path):
    scene = copy_scene(tmp_path)
    scene.change("UPDATE runs SET signature = NULL")
    assert scene.audit().problems == ("the signature of its run's closing is missing",)


@pytest.mark.parametrize("sign", [True, False])
def test_an_edge_is_disputed_under_each_simulator_if_the_ledger_names_another_one(tmp_path, sign):
    scene = copy_scene(tmp_path, sign=sign)
    own, other = make.service.SIMULATOR, records.digest("elsewhere")
    scene.sources.ledger.open_run(RunOpening(agent="a", starting_weights=STARTED), own)
    scene.change(f"UPDATE runs SET simulator = '{other}' WHERE id = '{scene.agent.run}'")
    problem = f"the ledger says that {other} served its run, and the signed edge names {own}"
    for simulator in (own, other):
        audit = audit_simulator(simulator, scene.sources)
        (agent,) = audit.agents
        assert (agent.edge.grade, agent.edge.problems, audit.unregistered) == (
            "disputed",
            (problem,),
            (),
        )


@pytest.mark.parametrize("sign", [True, False])
def test_an_edge_whose_run_is_missing_from_the_ledger_is_disputed(tmp_path, sign):
    scene = copy_scene(tmp_path, sign=sign)
    scene.change("DELETE FROM runs")
    assert scene.audit().problems == (f"the ledger has no run {scene.agent.run}",)


def test_a_conflicting_run_is_named_only_to_its_own_tenant(tmp_path):
    scene = copy_scene(tmp_path)
    ledger, statement_signer = (
        make.service.ledger(tmp_path),
        make.service.log_signer(tmp_path).statement_signer,
    )
    assert scene.agent.edge
    claim, run = scene.agent.edge.edge.claim, ledger.run(scene.agent.run)

    def close(tenant, purpose, signature=None):
        opening = RunOpening(agent="a", starting_weights=STARTED, purpose=purpose)
        other = ledger.open_run(opening, records.digest("elsewhere"), tenant=tenant)
        ledger.close_run(other.id, RunClosing(final_weights=FINAL, signature=signature))
        return other.id

    close("rival", "training")
    assert statement_signer.edge(run, claim).edge.grade == "proven"
    own_run = close(run.tenant, "evaluation")
    close("rival", "training", "signed")
    reasons = statement_signer.edge(run, claim).edge.reasons
    assert sorted(reasons) == [
        "a run of another tenant made the same weights in another simulator",
        f"run {own_run} made the same weights in another simulator",
    ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            """UPDATE runs SET opening = replace(opening, '"training"', '"evaluation"')""",
            "the run was not opened as the log says, which has purpose 'training'",
        ),
        (
            "UPDATE runs SET tenant = 'rival'",
            "the run was not opened as the log says, which has tenant 'local'",
        ),
        ("DELETE FROM log WHERE sequence = 1", "the run was not opened as the log says"),
    ],
)
def test_the_edge_of_a_run_whose_row_contradicts_its_log_is_disputed(tmp_path, statement, words):
    scene = copy_scene(tmp_path)
    scene.change(statement)
    assert scene.agent.edge
    statement_signer, claim = (
        make.service.log_signer(tmp_path).statement_signer,
        scene.agent.edge.edge.claim,
    )
    edge = statement_signer.edge(make.service.ledger(tmp_path).run(scene.agent.run), claim).edge
    assert edge.grade == "disputed"
    assert words in edge.reasons


def test_the_simulator_audit_shows_the_signed_episode_and_step_counts(tmp_path):
    scene = copy_scene(tmp_path)
    scene.change("UPDATE runs SET num_episodes = 99, num_steps = 99")
    (agent,) = audit_simulator(make.service.SIMULATOR, scene.sources).agents
    assert (agent.run.num_episodes, agent.run.num_steps) == (1, 1)


def test_a_deleted_edge_is_reported_as_missing_and_not_as_never_signed(tmp_path):
    scene = copy_scene(tmp_path)
    scene.change("DELETE FROM attestations WHERE kind = 'edge'")
    (reason,) = scene.audit().problems
    assert reason.startswith("the edge agent-edges/")
    assert reason.endswith(" is gone from the ledger; restore it")
    for copy in (tmp_path / "mirror/agent-edges").rglob("*.json"):
        copy.unlink()
    expected = "the edge that it was registered with is missing; restore the ledger"
    assert scene.audit().problems == (expected,)
    older_scene = scene._replace(agent=scene.agent.model_copy(update={"edge": None}))
    assert older_scene.audit().problems == (UNSIGNED_ORIGIN,)


@pytest.mark.parametrize("column", ["subject", "simulator", "run", "at", "envelope", "name"])
def test_an_edge_with_a_changed_row_is_disputed(tmp_path, column):
    scene = copy_scene(tmp_path)
    scene.change(f"UPDATE attestations SET {column} = 'x' WHERE kind = 'edge'")
    audit = scene.audit()
    assert audit.grade == "disputed"
    assert audit.problems


def test_a_registry_edge_that_differs_from_the_ledgers_edge_is_reported(tmp_path):
    scene = copy_scene(tmp_path)
    scene_without_edge = scene._replace(agent=scene.agent.model_copy(update={"edge": None}))
    assert scene_without_edge.audit().problems == (
        "the registry and the ledger have different edges of it",
    )


def test_the_simulator_audit_lists_the_edge_of_an_unregistered_agent(tmp_path):
    scene = copy_scene(tmp_path)
    simulator = make.service.SIMULATOR
    assert audit_simulator(simulator, scene.sources).unregistered == ()
    empty_sources = scene.sources._replace(registry=MemoryRegistry())
    (edge,) = audit_simulator(simulator, empty_sources).unregistered
    assert edge.claim.agent == "shell-agent"
    earlier_time = datetime.fromisoformat(edge.at) - timedelta(milliseconds=1)
    assert audit_simulator(simulator, empty_sources.as_of(earlier_time)).unregistered == ()


def test_a_claim_that_contradicts_the_run_record_is_disputed_with_reasons(tmp_path):
    service = make.service.service(tmp_path)

    async def attest_claim() -> SignedEdge:
        client = service.client()
        run = await client.open_run(RunOpening(agent="a", starting_weights=STARTED))
        claim = Claim(agent="a", artifact=FINAL, starting_weights=FINAL, simulator=run.simulator)
        try:
            return await client.attest(claim)
        finally:
            await client.close()

    edge = asyncio.run(attest_claim()).edge
    assert edge.grade == "disputed"
    assert [reason for reason in edge.reasons if "the run began with" in reason]
    assert [reason for reason in edge.reasons if "the run is open" in reason]
