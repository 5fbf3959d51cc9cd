"""Base models in folders are part of the lineage, in every output."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

import make.ledger
from agentworld.audit.checks.registration import registration_of
from agentworld.audit.export.cyclonedx.bill import bill_of_materials
from agentworld.audit.export.openlineage import events
from agentworld.audit.questions.agent import BaseLink, audit_agent
from agentworld.audit.questions.difference import audit_diff
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.corpus import CorpusUse
from agentworld.records.run import RunClosing, RunOpening
from agentworld.signing.envelope import Subject
from agentworld_console.graph import Graph, _add_stages
from make import records

BASE, REWARD, STARTED, LAW = map(records.digest, ("base", "reward", "started", "law"))
USE = CorpusUse(content=LAW, num_documents=2, num_tokens=90, share=0.2, target_share=0.4)


def world(name: str, base: str, address: str | None = None) -> WorldModel:
    data = records.digest("data")
    corpora = {"law": USE}
    cpt = records.checkpoint("cpt", data=data, parents=[base], base=address, corpora=corpora)
    inputs = {"data": data, "parents": [cpt.artifact], "reward_model": REWARD}
    rl = records.checkpoint("rl", artifact=records.digest(name), **inputs)
    return WorldModel(stages=(cpt, rl), report=records.digest("report"))


class Builder(NamedTuple):
    sources: Sources
    store: Path

    def agent(self, name: str, base: str, address: str | None = None) -> VersionRef:
        """Registers an agent of a simulator whose world model started from this base."""
        registry, ledger = self.sources.registry, self.sources.ledger
        registry.register_world_model("world", world(name, base, address), self.store)
        simulator = records.pinned(self.store, artifact=records.digest(name)).digest
        run = ledger.open_run(RunOpening(agent="hero", starting_weights=STARTED), simulator)
        ledger.close_run(run.id, RunClosing(final_weights=records.digest(f"hero of {name}")))
        checkpoint = records.checkpoint("agent", artifact=records.digest(f"hero of {name}"))
        return registry.register_agent("hero", Agent(checkpoint=checkpoint, run=run.id), self.store)


@pytest.fixture
def builder(tmp_path) -> Builder:
    ledger = Ledger(make.ledger.laid(f"sqlite:///{tmp_path}/ledger.db"))
    return Builder(Sources(MemoryRegistry(), ledger, tmp_path), tmp_path)


def test_the_chain_of_an_agent_leads_to_the_base_of_its_world_model(builder):
    chain = audit_agent(builder.agent("w", BASE, "s3://models/base"), builder.sources)
    link = BaseLink(artifact=BASE, address="s3://models/base", world_model=None)
    assert chain.bases == (link,)


def test_a_base_that_is_a_world_model_leads_on_to_its_own_base(builder):
    builder.agent("first", BASE)
    chain = audit_agent(builder.agent("second", records.digest("first")), builder.sources)
    assert [(link.artifact, link.world_model, link.data) for link in chain.bases] == [
        (records.digest("first"), "world@1", records.digest("data")),
        (BASE, None, None),
    ]


def test_an_unregistered_base_trained_in_the_store_is_noted_in_the_chain(builder):
    agent = builder.agent("w", BASE)
    sentence = f"the base {BASE} was trained in this store but is not a registered world model"
    assert sentence not in str(audit_agent(agent, builder.sources).notes)
    records.trained_step(builder.store, "sft", artifact=BASE)
    assert sentence in str(audit_agent(agent, builder.sources).notes)


def test_a_base_that_is_a_stage_of_a_version_leads_to_that_version(builder):
    builder.agent("first", BASE)
    cpt = records.checkpoint("cpt", data=records.digest("data"), parents=[BASE]).artifact
    records.trained_step(builder.store, "cpt", artifact=cpt)
    chain = audit_agent(builder.agent("second", cpt), builder.sources)
    assert chain.bases[0].world_model == "world@1"
    assert chain.bases[0].data == records.digest("data")
    assert "is not a registered world model" not in str(chain.notes)


def test_a_version_that_is_its_own_base_breaks_the_chain(builder):
    chain = audit_agent(builder.agent("w", records.digest("w")), builder.sources)
    assert [link.world_model for link in chain.bases] == ["world@1"]
    assert "the bases of world@1 lead back to world@1" in chain.problems


def test_a_corpus_is_in_the_chain_and_in_the_bill_of_materials(builder):
    agent = builder.agent("w", BASE)
    assert audit_agent(agent, builder.sources).stages[0].corpora == {"law": USE}
    bill = bill_of_materials(agent, builder.sources)
    (corpus,) = (part for part in bill["components"] if part["name"] == "corpus-law")
    assert (corpus["type"], corpus["bom-ref"]) == ("data", LAW)
    (users,) = (
        dependency["dependsOn"]
        for dependency in bill["dependencies"]
        if LAW in dependency["dependsOn"]
    )
    assert records.digest("data") in users


def test_the_difference_of_two_agents_contains_their_different_bases(builder):
    agents = builder.agent("w", BASE), builder.agent("other", records.digest("newer base"))
    differences = {
        difference.what: difference
        for difference in audit_diff(*agents, builder.sources).differences
    }
    assert (differences["base"].first, differences["base"].second) == (
        BASE,
        records.digest("newer base"),
    )


def test_a_registration_statement_names_the_base_reward_model_and_corpora():
    materials = registration_of("world", world("w", BASE)).materials
    assert Subject.of("cpt.parent", BASE) in materials
    assert Subject.of("rl.reward_model", REWARD) in materials
    assert Subject.of("cpt.corpus.law", LAW) in materials


def test_openlineage_lists_base_corpus_and_reward_model_as_stage_inputs(builder):
    builder.agent("w", BASE)
    inputs = {
        event["job"]["name"]: {dataset["name"] for dataset in event["inputs"]}
        for event in map(json.loads, events(builder.sources))
    }
    assert {BASE, LAW} <= inputs["cpt"]
    assert REWARD in inputs["rl"]


def test_a_graph_has_edges_from_base_and_corpus_to_the_first_stage():
    graph = Graph()
    _add_stages(graph, world("w", BASE))
    first = f"cpt {records.digest('artifact of cpt')}"
    assert (f"base {BASE}", first) in graph.edges
    assert (LAW, first) in graph.edges


def test_a_checkpoints_json_omits_an_unset_reward_model_and_unset_corpora():
    checkpoint = records.checkpoint("rl", data=records.digest("data"))
    assert not {"reward_model", "corpora"} & checkpoint.model_dump(mode="json").keys()
