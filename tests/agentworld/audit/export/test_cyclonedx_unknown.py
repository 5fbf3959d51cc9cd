"""Bills of materials of unknown, missing, or garbled records."""

import json
import sqlite3
from contextlib import closing

import pytest

import make.agent
import make.service
from agentworld.audit.checks.statements import registrations
from agentworld.audit.export.cyclonedx.bill import bill_of_materials
from agentworld.audit.export.cyclonedx.data import data_component
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, NotFound
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.base import now
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.run import RunOpening
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.storage.receipts import step_that_made
from make import records
from make.bill import BASE, SERVED, BilledAgent, build, checked, parts_of, properties, uses, world
from make.statement import registered
from make.story import DATA, EARLY_DATA, story

pytestmark = pytest.mark.compute


@pytest.fixture
def own(tmp_path) -> BilledAgent:
    return build(tmp_path)


def withdraw(lineage: BilledAgent, version: str) -> None:
    sources = lineage.sources
    (statement,) = registrations(sources.ledger.attestations, sources.evidence, version).counted
    fields = {"version": version, "artifact": statement.artifact, "registered": statement.digest}
    lineage.scene.statement_signer.declare(Withdrawal(**fields, reason="r", by="ada", at=now()))


def without_world(lineage: BilledAgent) -> Sources:
    """The sources with a registry that has only the agent."""
    registry = MemoryRegistry()
    registry.register_agent("shell-agent", lineage.scene.agent, lineage.scene.store / "model")
    return lineage.sources._replace(registry=registry)


def test_a_world_model_trained_from_scratch_has_no_base(own):
    registry = without_world(own).registry
    registry.register_world_model("world", world(own.data.digest), own.scene.store / "world")
    bill = checked(bill_of_materials(own.scene.ref, own.sources._replace(registry=registry)))
    assert BASE not in json.dumps(bill)
    assert uses(bill)[records.digest("artifact of cpt")] == [own.data.digest]


def test_a_base_that_is_a_world_model_depends_on_its_own_base(own):
    registry = without_world(own).registry
    base_world = world(own.data.digest, parents=[BASE])
    (first, last) = base_world.stages
    data = records.digest("older data")
    last = last.model_copy(update={"artifact": records.digest("older"), "data": data})
    base_world = base_world.model_copy(update={"stages": (first, last)})
    registry.register_world_model("older", base_world, own.scene.store / "world")
    newer_world = world(own.data.digest, parents=[last.artifact])
    registry.register_world_model("world", newer_world, own.scene.store / "world")
    bill = checked(bill_of_materials(own.scene.ref, own.sources._replace(registry=registry)))
    assert parts_of(bill)[last.artifact]["name"] == "older"
    assert uses(bill)[last.artifact] == [BASE, data]
    assert data in parts_of(bill)


def test_a_deleted_data_set_has_only_its_digest(own):
    step_that_made(own.scene.store, "prepare", own.data.digest).folder.rename(own.scene.store / "x")
    part = parts_of(own.bill)[own.data.digest]
    assert "licenses" not in part
    assert properties(part).keys() == {"digest-of"}


def test_an_unstated_license_is_not_listed_as_a_license(tmp_path):
    dataset = records.dataset().model_copy(update={"licences": {"MIT": 1, "unstated": 2}})
    dataset.write(records.finished_step(tmp_path, "prepare", dataset.digest) / "dataset.json")
    part = data_component(dataset.digest, tmp_path)
    assert part["licenses"] == [{"license": {"id": "MIT"}}]
    assert json.loads(properties(part)["licences"]) == {"MIT": 1, "unstated": 2}


def test_a_withdrawn_world_model_is_described_by_its_signed_statements(own):
    withdraw(own, "world@1")
    bill = checked(bill_of_materials(own.scene.ref, without_world(own)))
    part = parts_of(bill)[SERVED]
    assert (part["name"], part["version"], properties(part)["withdrawn"]) == ("world", "1", "true")
    assert uses(bill)[SERVED] == [own.data.digest]  # by the signed edge


def test_unregistered_served_weights_are_named_by_their_digest(own):
    other_world = WorldModel(stages=(records.checkpoint("cpt"),), report=BASE)
    registry, store = own.scene.registry, own.scene.store
    registered("other", other_world, store / "world", registry, store)
    withdraw(own, "other@1")
    part = parts_of(checked(bill_of_materials(own.scene.ref, without_world(own))))[SERVED]
    assert part["name"] == f"world-model-{SERVED[7:19]}"
    assert "withdrawn" not in properties(part)


def test_an_endpoint_is_listed_as_a_service_without_weights(tmp_path):
    agent = make.agent.registered(tmp_path, MemoryRegistry())
    engine = {"kind": "openai", "url": "https://models.example/v1", "model": "m"}
    endpoint = records.pinned(tmp_path, artifact=None, files={}, engine=engine)
    run = agent.ledger.open_run(
        RunOpening(agent="shell-agent", starting_weights=records.digest("s")), endpoint.digest
    )
    ref = agent.registry.register_agent(
        "other", Agent(checkpoint=records.checkpoint("agent"), run=run.id), tmp_path / "model"
    )
    bill = checked(bill_of_materials(ref, agent.sources))
    (service,) = bill["services"]
    assert (service["name"], service["endpoints"]) == ("m", [engine["url"]])
    assert uses(bill)[endpoint.digest] == [service["bom-ref"]]
    models = [
        component
        for component in bill["components"]
        if component["type"] == "machine-learning-model"
    ]
    assert [component["bom-ref"] for component in models] == [records.digest("s")]


def test_a_simulator_without_a_manifest_has_only_its_digest_and_is_a_break(own):
    simulator = own.scene.simulator.digest
    next(own.scene.store.glob("simulators/*/manifest.json")).unlink()
    bill = own.bill
    assert properties(parts_of(bill)[simulator]).keys() == {"digest-of"}
    agent = properties(bill["metadata"]["component"])
    assert agent["break"] == "the simulator's manifest is not in the store"


def test_an_agent_without_a_signed_edge_has_no_timestamp_and_a_dispute_reason(tmp_path):
    history = story(tmp_path)
    bill = checked(bill_of_materials(history.agent, history.sources))
    assert "timestamp" not in bill["metadata"]
    agent = bill["metadata"]["component"]
    assert "externalReferences" not in agent
    values = properties(agent)
    assert values["grade"] == "disputed"
    assert values["break"].startswith("no signed statement names its simulator")
    assert values["incomplete"] == "the agent was not validated live"
    assert {DATA, EARLY_DATA} <= parts_of(bill).keys()


def test_the_bill_of_a_store_without_evidence_has_no_grade(own):
    bill = checked(bill_of_materials(own.scene.ref, own.sources._replace(evidence=None)))
    values = properties(bill["metadata"]["component"])
    assert values.keys().isdisjoint({"grade", "edge"})


def test_an_agent_trained_by_an_external_trainer_has_no_model_parameters(own):
    agent = own.scene.agent
    recipes = {"ours": {"rl": {}}, "outside": {}}
    bills = {}
    for name, recipe in recipes.items():
        checkpoint = agent.checkpoint.model_copy(update={"recipe": recipe})
        variant = agent.model_copy(update={"checkpoint": checkpoint, "report": None})
        ref = own.scene.registry.register_agent(name, variant, own.scene.store / "model")
        bills[name] = checked(bill_of_materials(ref, own.sources))["metadata"]["component"]
    card = bills["ours"]["modelCard"]
    assert card["modelParameters"]["approach"] == {"type": "reinforcement-learning"}
    assert "modelParameters" not in bills["outside"]["modelCard"]
    assert "recipe" not in properties(bills["outside"])


def register_started_from(own: BilledAgent, weights: str, checkpoint: Checkpoint) -> VersionRef:
    opening = RunOpening(agent="other", starting_weights=weights)
    run = own.scene.ledger.open_run(opening, own.scene.simulator.digest)
    agent = Agent(checkpoint=checkpoint, run=run.id)
    return own.scene.registry.register_agent("other", agent, own.scene.store / "model")


def test_an_agent_that_starts_from_the_world_model_lists_the_world_model_once(own):
    ref = register_started_from(own, SERVED, records.checkpoint("agent"))
    bill = checked(bill_of_materials(ref, own.sources))
    assert parts_of(bill)[SERVED]["name"] == "world"
    assert SERVED in uses(bill)[records.digest("artifact of agent")]


def test_an_agent_whose_training_changed_nothing_does_not_depend_on_itself(own):
    artifact = records.digest("artifact of agent")
    bill = checked(
        bill_of_materials(
            register_started_from(own, artifact, records.checkpoint("agent")), own.sources
        )
    )
    assert uses(bill)[artifact] == [own.scene.simulator.digest]


def test_an_unregistered_agent_has_no_bill(own):
    with pytest.raises(NotFound, match="nothing is registered as 'gone'"):
        bill_of_materials(VersionRef(name="gone", version=1), own.sources)


def test_an_agent_has_no_bill_at_a_time_before_its_registration(tmp_path):
    history = story(tmp_path)
    assert checked(bill_of_materials(history.agent, history.at("an agent")))
    with pytest.raises(NotFound, match="hero@1 was not registered by"):
        bill_of_materials(history.agent, history.at("weights"))


@pytest.mark.parametrize(
    ("column", "words"),
    [("opening = 'x'", "is garbled"), ("simulator = 'x'", "is garbled")],
)
def test_a_garbled_run_raises_a_one_line_error(own, column, words):
    with closing(sqlite3.connect(own.scene.store / "ledger.db")) as database, database:
        assert database.execute(f"UPDATE runs SET {column}").rowcount
    ledger = make.service.ledger(own.scene.store)
    with pytest.raises(EvidenceError, match=words) as error:
        bill_of_materials(own.scene.ref, own.sources._replace(ledger=ledger))
    assert "\n" not in str(error.value)


def test_a_changed_data_set_manifest_raises_an_error(own):
    folder = step_that_made(own.scene.store, "prepare", own.data.digest).folder
    changed_dataset = own.data.dataset.model_copy(update={"licences": {"MIT": 1}})
    changed_dataset.write(folder / "dataset.json")
    with pytest.raises(EvidenceError, match=f"is not that of {own.data.digest}; restore it"):
        bill_of_materials(own.scene.ref, own.sources)


def test_an_agent_whose_edge_changed_in_the_ledger_is_disputed(own):
    with closing(sqlite3.connect(own.scene.store / "ledger.db")) as database, database:
        envelope = "replace(envelope, 'payload\":\"e', 'payload\":\"f')"
        cursor = database.execute(
            f"UPDATE attestations SET envelope = {envelope} WHERE kind = 'edge'"
        )
        assert cursor.rowcount
    values = properties(own.bill["metadata"]["component"])
    assert values["grade"] == "disputed"
    assert values["edge"] == own.scene.agent.edge.envelope  # the registry's copy, which verifies


@pytest.mark.parametrize(
    ("before", "after"), [('"sig":"', '"sig":"AAAA'), ('"payload":"', '"payload":"AAAA')]
)
def test_an_edge_that_does_not_verify_is_not_in_the_bill(own, before, after):
    edge = own.scene.agent.edge
    assert before in edge.envelope
    changed_edge = edge.model_copy(update={"envelope": edge.envelope.replace(before, after)})
    registry = MemoryRegistry()
    agent = own.scene.agent.model_copy(update={"edge": changed_edge})
    ref = registry.register_agent("shell-agent", agent, own.scene.store / "model")
    bill = checked(bill_of_materials(ref, own.sources._replace(registry=registry)))
    component = bill["metadata"]["component"]
    assert properties(component)["grade"] == "disputed"
    assert "edge" not in properties(component)
    assert "externalReferences" not in component
    assert "timestamp" not in bill["metadata"]


def test_an_edge_of_another_name_is_not_in_the_bill(own):
    ref = own.scene.registry.register_agent("other", own.scene.agent, own.scene.store / "model")
    bill = checked(bill_of_materials(ref, own.sources))
    assert "edge" not in properties(bill["metadata"]["component"])
