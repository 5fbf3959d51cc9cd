"""An agent's AI bill of materials."""

import json
from datetime import datetime

import pytest

import make.agent
from agentworld import __version__
from agentworld.audit.export.cyclonedx.bill import bill_of_materials
from agentworld.audit.export.cyclonedx.parts import Inventory, licences_of
from agentworld.audit.export.cyclonedx.simulator import add_simulator
from agentworld.audit.read.sources import manifest_of
from agentworld.errors import EvidenceError, NotFound
from agentworld.lineage.base import WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.bill_of_materials import bill_as_text, signed_bill
from agentworld.records.statements.edge import Edge
from agentworld.signing.envelope import verify, verify_envelope
from agentworld.storage.simulators import SimulatorStore
from make import records
from make.bill import (
    ADDRESS,
    BASE,
    REWARD,
    SERVED,
    BilledAgent,
    build,
    checked,
    parts_of,
    properties,
    uses,
    world,
)

pytestmark = pytest.mark.compute


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> BilledAgent:
    """For tests that change nothing in its store."""
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture
def own(tmp_path) -> BilledAgent:
    """For tests that change its store."""
    return build(tmp_path)


def test_dependencies_lead_from_the_agent_to_the_data_and_the_base(built):
    bill, simulator, data = built.bill, built.scene.simulator.digest, built.data.digest
    cpt = records.digest("artifact of cpt")
    assert uses(bill) == {
        built.scene.agent.artifact: [make.agent.STARTED, simulator],
        simulator: [SERVED, "transformers-serve@5.19.0"],
        SERVED: [cpt, REWARD, data],
        cpt: [BASE, data],
    }


def test_every_component_has_its_name_its_type_and_its_hash(built):
    bill, simulator, data = built.bill, built.scene.simulator.digest, built.data.digest
    parts = {
        digest: parts_of(bill)[digest] for digest in parts_of(bill) if digest.startswith("sha256:")
    }
    for digest, part in parts.items():
        assert part["hashes"] == [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]
    model = "machine-learning-model"
    assert {digest: (part["type"], part["name"]) for digest, part in parts.items()} == {
        built.scene.agent.artifact: (model, "shell-agent"),
        make.agent.STARTED: (model, f"starting-weights-{make.agent.STARTED[7:19]}"),
        simulator: ("application", f"simulator-{simulator[7:19]}"),
        SERVED: (model, "world"),
        records.digest("artifact of cpt"): (model, "world/cpt"),
        REWARD: (model, f"reward-model-{REWARD[7:19]}"),
        BASE: (model, f"base-{BASE[7:19]}"),
        data: ("data", f"data-set-{data[7:19]}"),
    }


def test_a_base_has_its_download_address_without_secrets(own):
    assert parts_of(own.bill)[BASE]["externalReferences"] == [
        {"type": "distribution", "url": ADDRESS}
    ]
    address = "https://ada:secret@models/my base"
    (stage, *_) = world(own.data.digest, base=address, parents=[BASE]).stages
    world_model = WorldModel(
        stages=(stage, records.checkpoint("rl", parents=[stage.artifact])), report=BASE
    )
    registry = MemoryRegistry()
    registry.register_world_model("world", world_model, own.scene.store / "world")
    ref = registry.register_agent("shell-agent", own.scene.agent, own.scene.store / "model")
    other_bill = checked(bill_of_materials(ref, own.sources._replace(registry=registry)))
    assert "secret" not in json.dumps(other_bill)
    assert (
        parts_of(other_bill)[BASE]["externalReferences"][0]["url"]
        == "https://ada:***@models/my%20base"
    )


def test_a_data_set_has_its_licenses_sources_and_counts(built):
    part = parts_of(built.bill)[built.data.digest]
    dataset = built.data.dataset
    assert part["licenses"] == [{"license": {"name": name}} for name in dataset.licences]
    values = properties(part)
    assert json.loads(values["licences"]) == dataset.licences
    assert json.loads(values["sources"]) == dataset.sources
    assert values["trajectories"] == str(dataset.num_trajectories)
    assert values["collected"] == dataset.parents[0].collected


def test_licenses_are_spdx_identifiers_expressions_or_the_given_names():
    names = ["mit", "Apache-2.0 or MIT", "CC-BY-4.0", "GPL-2.0+", "our own", "LicenseRef-x", "\0"]
    assert licences_of(names) == [
        {"license": {"name": "\0"}},
        {"expression": "Apache-2.0 OR MIT"},
        {"license": {"id": "CC-BY-4.0"}},
        {"expression": "GPL-2.0+"},
        {"expression": "LicenseRef-x"},
        {"license": {"id": "MIT"}},
        {"license": {"name": "our own"}},
    ]


def test_the_engine_has_its_version_and_its_command_line_arguments(own):
    engine = {"kind": "vllm", "version": "0.32.0", "image": records.digest("image")}
    arguments = ("--max-num-seqs", "8", "--served-name", "a b")
    simulator = records.pinned(own.scene.store, engine={**engine, "arguments": arguments}).digest
    inventory = Inventory()
    add_simulator(inventory, simulator, manifest_of(simulator, own.scene.store))
    part = inventory.components["vllm@0.32.0"]
    assert (part["name"], part["version"]) == ("vllm", "0.32.0")
    values = properties(part)
    assert (values["image"], values["dtype"]) == (records.digest("image"), "float32")
    assert values["arguments"] == "--max-num-seqs 8 --served-name 'a b'"


def test_the_served_model_has_the_hash_of_each_file(built):
    files = parts_of(built.bill)[SERVED]["components"]
    manifest = SimulatorStore(built.scene.store).find(built.scene.simulator.digest).manifest
    hashes = {file["name"]: file["hashes"][0]["content"] for file in files}
    assert hashes == {
        name: digest.removeprefix("sha256:") for name, digest in manifest.files.items()
    }


def test_the_grade_and_the_live_validation_are_properties_of_the_agent(built):
    values = properties(built.bill["metadata"]["component"])
    assert values["grade"] == "observed"
    assert (values["run"], values["episodes"], values["steps"]) == (built.scene.agent.run, "1", "2")
    live = [values[f"live-{name}"] for name in ("tasks", "successes", "successes-before")]
    assert live == ["100", "50", "10"]
    assert values["live-report-signed"] == "true"
    card = built.bill["metadata"]["component"]["modelCard"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    assert [(metric["slice"], metric["value"]) for metric in metrics] == [
        ("base", "0.02"),
        ("imitated", "0.1"),
        ("trained", "0.5"),
        ("trained", "0.4"),
    ]


def test_the_signed_edge_in_the_bill_verifies_and_gives_the_timestamp(built):
    agent = built.bill["metadata"]["component"]
    envelope = properties(agent)["edge"].encode()
    edge = verify_envelope(envelope, Edge, built.sources.evidence.trusted)
    assert edge.claim.artifact == built.scene.agent.artifact
    assert built.bill["metadata"]["timestamp"] == edge.at
    assert datetime.fromisoformat(edge.at).tzinfo
    (reference,) = agent["externalReferences"]
    assert built.sources.evidence.mirror.get(reference["url"]) == envelope


def test_equal_records_give_equal_bills_and_changed_records_new_serial_numbers(own):
    first = bill_as_text(own.scene.ref, own.sources)
    assert first == bill_as_text(own.scene.ref, own.sources)
    assert first.isascii()
    own.scene.validated(own.scene.simulator.digest, live_steps=701)
    second = bill_as_text(own.scene.ref, own.sources)
    assert json.loads(second)["serialNumber"] != json.loads(first)["serialNumber"]


def test_a_bill_contains_the_name_and_version_of_agentworld(built):
    (tool,) = built.bill["metadata"]["tools"]["components"]
    assert (tool["name"], tool["version"]) == ("agentworld", __version__)


def test_a_signed_bill_is_an_in_toto_statement_about_the_agents_artifact(built):
    envelope = signed_bill(built.scene.ref, built.sources)
    statement = verify(envelope.encode(), built.sources.evidence.trusted)
    assert statement.predicate_type == "https://cyclonedx.org/bom"
    assert statement.predicate == built.bill
    (subject,) = statement.subject
    assert subject.digests == {"sha256": built.scene.agent.artifact.removeprefix("sha256:")}
    assert envelope == signed_bill(built.scene.ref, built.sources)
    with pytest.raises(EvidenceError, match="the signature is not that of the key"):
        verify(
            envelope.replace('payload":"e', 'payload":"f').encode(), built.sources.evidence.trusted
        )


def test_signing_a_bill_without_a_private_key_fails(own):
    (own.scene.store / "keys/simulator/signer.pem").unlink()
    with pytest.raises(NotFound, match="there is no signer"):
        signed_bill(own.scene.ref, own.sources)
    assert own.bill["metadata"]["timestamp"]
