import os
import sqlite3
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import make.datasets
import make.ledger
from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.simulator import audit_simulator
from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.errors import InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeOpened, NewStep
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records
from make.template import copied

SIMULATOR = records.manifest().digest
STARTED, TRAINED = records.digest("imitated"), records.digest("trained")


class Story(NamedTuple):
    """The events, in the three sources."""

    sources: Sources
    agent: VersionRef
    run: AgentRun


def stages(**sft: object) -> tuple[Checkpoint, ...]:
    data = records.digest("data")
    cpt = records.checkpoint("cpt", data=data)
    middle = records.checkpoint("sft", **{"data": data, "parents": [cpt.artifact], **sft})
    return cpt, middle, records.checkpoint("rl", data=data, parents=[middle.artifact])


def play(ledger: Ledger, run: AgentRun) -> None:
    episode = Episode.new("e", run.simulator, EpisodeOpening(run=run.id))
    ledger.write([EpisodeOpened(episode)])
    ledger.write(
        [NewStep(run.id, step) for step in records.episode("[0] ~", "[0] ~", base=episode).steps]
    )


def story(
    store: Path,
    *,
    served: Digest = SIMULATOR,
    claimed: Digest = SIMULATOR,
    made: Digest = TRAINED,
    world_model: WorldModel | None = None,
) -> Story:
    """A simulator trains an agent; `claimed` and `made` are what the trainer states."""
    arguments = {"served": served, "claimed": claimed, "made": made}
    return (
        copied(_story, store, **arguments)
        if world_model is None
        else _story(store, **arguments, world_model=world_model)
    )


def _story(
    store: Path,
    *,
    served: Digest,
    claimed: Digest,
    made: Digest,
    world_model: WorldModel | None = None,
) -> Story:
    registry, ledger = MemoryRegistry(), Ledger(make.ledger.laid(f"sqlite:///{store}/ledger.db"))
    world = world_model or WorldModel(stages=stages(), report=records.digest("report"))
    registry.register_world_model("agentworld-shell", world, store)
    records.pinned(store)
    run = ledger.open_run(RunOpening(agent="shell-agent", starting_weights=STARTED), served)
    play(ledger, run)
    run = ledger.close_run(run.id, RunClosing(final_weights=TRAINED))
    checkpoint = records.checkpoint("agent", artifact=made, parents=[STARTED], simulator=claimed)
    ref = registry.register_agent("shell-agent", Agent(checkpoint=checkpoint, run=run.id), store)
    inputs = {"agent": made, "simulator": served}
    folder = records.finished_step(store, "validate", records.agent_report().digest, **inputs)
    records.agent_report().write(folder / "report.json")
    return Story(Sources(registry, ledger, store), ref, run)


def test_the_chain_of_an_agent_leads_to_its_data(tmp_path):
    history = story(tmp_path)
    chain = audit_agent(history.agent, history.sources)
    assert (chain.problems, chain.notes) == ((), ())
    assert (chain.subject, chain.artifact) == ("shell-agent@1", TRAINED)
    assert (chain.simulator, chain.world_model) == (SIMULATOR, "agentworld-shell@1")
    assert [link.stage for link in chain.stages] == ["cpt", "sft", "rl"]
    assert chain.data == records.digest("data")


def test_the_episodes_of_a_run_are_counted_by_the_ledger(tmp_path):
    history = story(tmp_path)
    run = audit_agent(history.agent, history.sources).run
    assert (run.num_episodes, run.num_steps) == (1, 2)


def test_live_successes_come_from_the_validation_of_the_agents_weights(tmp_path):
    history = story(tmp_path)
    live = audit_agent(history.agent, history.sources).live
    assert live
    assert (live.episodes, live.successes_before, live.successes_after) == (300, 10, 50)
    assert live.num_tasks == 100


def test_an_audit_at_a_time_ignores_a_validation_finished_later(tmp_path):
    history = story(tmp_path)
    at = history.sources.registry.version(history.agent).at
    (receipt,) = tmp_path.glob("steps/validate/*/receipt.json")
    os.utime(receipt, (at.timestamp() + 1, at.timestamp() + 1))
    assert audit_agent(history.agent, history.sources.as_of(at)).live is None
    assert audit_agent(history.agent, history.sources.as_of(at + timedelta(seconds=2))).live


def test_a_chain_contains_the_registration_time_and_the_data_set(tmp_path):
    data_set = make.datasets.stored(tmp_path)
    stage = records.checkpoint("rl", data=data_set.digest)
    world_model = WorldModel(stages=(stage,), report=records.digest("report"))
    history = story(tmp_path, world_model=world_model)
    chain = audit_agent(history.agent, history.sources)
    assert chain.registered_at == history.sources.registry.version(history.agent).at
    assert chain.data_set
    assert (chain.data_set.domains, chain.data_set.origin) == (("text",), "imported from messages")
    assert chain.data_set.num_trajectories == data_set.dataset.num_trajectories


def test_the_chain_has_no_data_set_if_the_store_lacks_the_data(tmp_path):
    history = story(tmp_path)
    assert audit_agent(history.agent, history.sources).data_set is None


OTHER = records.digest("other")


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"claimed": OTHER}, f"the run was served by {SIMULATOR}, the checkpoint names {OTHER}"),
        ({"made": OTHER}, f"the run ended with {TRAINED}, the version stands for {OTHER}"),
        ({"served": OTHER}, "the simulator's manifest is not in the store"),
        (
            {"world_model": WorldModel(stages=stages(parents=[]), report=OTHER)},
            "sft does not start from cpt",
        ),
        (
            {"world_model": WorldModel(stages=stages(data=OTHER), report=OTHER)},
            f"sft read the data {OTHER}",
        ),
    ],
    ids=["another simulator", "other weights", "unknown simulator", "no parent", "other data"],
)
def test_a_contradiction_in_the_chain_is_reported(tmp_path, lie, words):
    history = story(tmp_path, **lie)
    problems = audit_agent(history.agent, history.sources).problems
    assert [problem for problem in problems if words in problem]


def test_a_changed_simulator_manifest_counts_as_missing(tmp_path):
    history = story(tmp_path)
    (path,) = tmp_path.glob("simulators/*/manifest.json")
    records.manifest(context_tokens=2048).write(path)
    chain = audit_agent(history.agent, history.sources)
    assert chain.world_model is None
    assert "the simulator's manifest is not in the store" in chain.problems


def test_an_agent_without_a_live_validation_has_a_note(tmp_path):
    history = story(tmp_path)
    (receipt,) = tmp_path.glob("steps/validate/*/receipt.json")
    receipt.unlink()
    chain = audit_agent(history.agent, history.sources)
    assert chain.notes == ("the agent was not validated live",)
    assert chain.problems == ()


def test_a_changed_validation_is_a_problem_and_its_figures_are_not_shown(tmp_path):
    history = story(tmp_path)
    (report,) = tmp_path.glob("steps/validate/*/report.json")
    records.agent_report(live_steps=1).write(report)
    chain = audit_agent(history.agent, history.sources)
    assert chain.live is None
    assert [
        problem
        for problem in chain.problems
        if "the live validation in" in problem and "changed" in problem
    ]


def test_an_unregistered_agent_has_no_chain(tmp_path):
    history = story(tmp_path)
    with pytest.raises(NotFound, match="no version 9 of shell-agent"):
        audit_agent(VersionRef(name="shell-agent", version=9), history.sources)


@pytest.mark.parametrize("start", [SIMULATOR, SIMULATOR[:15], SIMULATOR[7:15]])
def test_a_simulator_digest_or_its_prefix_leads_to_the_trained_agents(tmp_path, start):
    history = story(tmp_path)
    audit = audit_simulator(start, history.sources)
    assert audit.world_model == "agentworld-shell@1"
    assert [(agent.agent, agent.run.id) for agent in audit.agents] == [
        ("shell-agent@1", history.run.id)
    ]


def test_agents_are_listed_by_the_simulator_of_their_run_not_by_their_claim(tmp_path):
    history = story(tmp_path, served=OTHER, claimed=SIMULATOR)
    assert audit_simulator(SIMULATOR, history.sources).agents == ()
    assert [agent.agent for agent in audit_simulator(OTHER, history.sources).agents] == [
        "shell-agent@1"
    ]


def test_a_run_without_an_agent_is_listed_under_other_runs(tmp_path):
    history = story(tmp_path)
    opening = RunOpening(agent="shell-agent", starting_weights=STARTED, purpose="evaluation")
    assert isinstance(history.sources.ledger, Ledger)
    other = history.sources.ledger.open_run(opening, SIMULATOR)
    assert [run.id for run in audit_simulator(SIMULATOR, history.sources).other_runs] == [other.id]


def test_the_error_for_an_unknown_simulator_lists_the_existing_simulators(tmp_path):
    with pytest.raises(NotFound, match=f"no simulator sha256:00 in .*; simulators are {SIMULATOR}"):
        audit_simulator("00", story(tmp_path).sources)


def test_an_ambiguous_digest_prefix_is_rejected(tmp_path):
    history = story(tmp_path)
    records.pinned(tmp_path, context_tokens=2048)
    with pytest.raises(InputError, match="is the start of"):
        audit_simulator("sha256:", history.sources)


def test_an_alias_leads_to_its_current_simulator(tmp_path):
    history = story(tmp_path)
    history.sources.ledger.aliases.set("production", OTHER, "me")
    history.sources.ledger.aliases.set("production", SIMULATOR, "me")
    assert audit_simulator("production", history.sources).simulator == SIMULATOR


def test_the_chain_of_an_agent_trained_with_an_endpoint_ends_at_the_endpoint(tmp_path):
    endpoint = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    world = records.pinned(tmp_path, artifact=None, files={}, engine=endpoint)
    history = story(tmp_path, served=world.digest, claimed=world.digest)
    chain = audit_agent(history.agent, history.sources)
    assert chain.world_model is None
    assert [problem for problem in chain.notes if "whose model cannot be verified" in problem]
    assert chain.problems == ()


def seal_log(history: Story) -> Story:
    """The story with a sealed log, and the keys to trust."""
    store = history.sources.store
    signer, copies = partial(ensure_signer, store / "keys"), WriteOnce(str(store / "mirror"))
    assert isinstance(history.sources.ledger, Ledger)
    LogCheckpointSigner(history.sources.ledger, history.run.simulator, signer, copies).seal_all()
    evidence = Evidence(load_trusted(store / "keys"), copies)
    return history._replace(sources=history.sources._replace(evidence=evidence))


def test_a_store_without_keys_has_no_evidence(tmp_path):
    history = story(tmp_path)
    assert audit_agent(history.agent, history.sources).evidence is None
    assert audit_simulator(SIMULATOR, history.sources).evidence == {}


def test_an_audit_with_verification_grades_the_runs_record_as_verified(tmp_path):
    history = seal_log(story(tmp_path))
    evidence = audit_agent(history.agent, history.sources, verify=True).evidence
    assert evidence
    assert (evidence.grade, evidence.problems) == ("verified", ())


def test_problems_of_a_broken_run_record_are_problems_of_the_chain(tmp_path):
    history = seal_log(story(tmp_path))
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 1.0")
    chain = audit_agent(history.agent, history.sources, verify=True)
    assert chain.evidence
    assert chain.evidence.grade == "broken"
    assert set(chain.evidence.problems) <= set(chain.problems)


def test_each_run_of_a_simulator_has_its_own_grade(tmp_path):
    history = seal_log(story(tmp_path))
    assert isinstance(history.sources.ledger, Ledger)
    other = history.sources.ledger.open_run(history.run.opening, SIMULATOR)
    evidence = audit_simulator(SIMULATOR, history.sources, verify=True).evidence
    states = {run: verification.grade for run, verification in evidence.items()}
    assert states == {history.run.id: "verified", other.id: "unsigned"}


def test_other_runs_of_a_simulator_are_audited_beside_a_garbled_run(tmp_path):
    history = seal_log(story(tmp_path))
    assert isinstance(history.sources.ledger, Ledger)
    other = history.sources.ledger.open_run(history.run.opening, SIMULATOR)
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE runs SET log_length = -1 WHERE id = ?", [history.run.id])
    (run,) = audit_simulator(SIMULATOR, history.sources, verify=True).other_runs
    assert run == other
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE runs SET log_length = 1 WHERE id = ?", [history.run.id])
        database.execute("UPDATE log SET body = 'text' WHERE run = ?", [history.run.id])
    evidence = audit_simulator(SIMULATOR, history.sources, verify=True).evidence
    assert evidence[history.run.id].grade == "broken"
    assert "is missing, garbled or out of place" in " ".join(evidence[history.run.id].problems)
    assert evidence[other.id].grade == "unsigned"
