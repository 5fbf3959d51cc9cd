"""An outside trainer opens a run, plays, closes it without a signature, and submits its weights."""

import asyncio
import json
from pathlib import Path

import pytest

import make.registry
import make.service
from agentworld.audit.questions.agent import audit_agent
from agentworld.errors import Conflict, InputError, NotFound
from agentworld.operations.adopt import ADOPTED, AdoptionResult, adopt
from agentworld.operations.ledger import open_sources
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.run import RunOpening
from agentworld.steps.validate import _simulator
from make import records

pytestmark = pytest.mark.waits

OPENING = RunOpening(agent="theirs", starting_weights=records.digest("their base"))


def model(folder: Path, values: bytes) -> Path:
    folder.mkdir()
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(values)], "data_offsets": [0, 4]}})
    data = len(header).to_bytes(8, "little") + header.encode() + values
    (folder / "model.safetensors").write_bytes(data)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path / "store"


@pytest.fixture
def registry(store):
    """The store's registry, which the first adoption would otherwise create within seconds."""
    make.registry.database(store)


@pytest.fixture
def trained(tmp_path):
    return model(tmp_path / "trained", b"good")


@pytest.fixture
def trainer(store, trained):
    """The actions of an external trainer in the store's simulator; returns the run's name."""
    service = make.service.service(store, pinned=records.pinned(store).manifest)

    async def work(close):
        client = service.client()
        await client.open_run(OPENING)
        await make.service.play(client, "echo a", "echo b", run=client.run.id)
        if close:
            await client.close_run(ArtifactManifest.of(trained).digest)
        await client.close()
        return client.run.id

    return lambda close=True: asyncio.run(work(close))


def adopt_model(store, folder, run, name="their-agent"):
    output = Path(adopt(str(store), str(folder), run, name))
    return output, AdoptionResult.read(output / ADOPTED)


def test_the_final_weights_of_a_run_are_adopted_with_grade_observed(store, trained, trainer):
    run = trainer()
    folder, result = adopt_model(store, trained, run)
    assert (str(result.version), result.grade, result.reasons) == ("their-agent@1", "observed", ())
    chain = audit_agent(result.version, open_sources(store), verify=True)
    assert (chain.edge.grade, chain.edge.edge.traffic.num_steps) == ("observed", 2)
    assert chain.evidence.grade == "verified"
    checkpoint = open_sources(store).registry.agent(result.version).checkpoint
    assert (checkpoint.parents, checkpoint.num_parameters) == ((OPENING.starting_weights,), 4)
    assert ArtifactManifest.of(folder / "model") == ArtifactManifest.of(trained)
    assert _simulator("", folder, store) == chain.simulator


@pytest.mark.usefixtures("registry")
def test_repeating_a_killed_adoption_adopts_only_once(store, trained, trainer):
    run = trainer()
    folder, result = adopt_model(store, trained, run)
    (folder / "receipt.json").unlink()
    assert adopt_model(store, trained, run) == (folder, result)


@pytest.mark.usefixtures("registry")
def test_other_weights_are_registered_as_disputed_with_the_reason(
    store, trained, trainer, tmp_path
):
    run, other_model = trainer(), model(tmp_path / "other", b"evil")
    _, result = adopt_model(store, other_model, run)
    digests = [ArtifactManifest.of(folder).digest for folder in (trained, other_model)]
    reason = f"the run made {digests[0]}, and {digests[1]} is registered"
    assert (result.grade, result.reasons) == ("disputed", (reason,))
    chain = audit_agent(result.version, open_sources(store))
    assert chain.edge.grade == "disputed"
    assert reason in chain.problems


def test_a_run_that_is_open_is_refused(store, trained, trainer):
    with pytest.raises(Conflict, match="is open; close it with the weights"):
        adopt_model(store, trained, trainer(close=False))
    assert not (store / "mlflow.db").exists()


def test_an_invalid_model_or_name_is_refused_before_the_registry_is_used(
    store, trained, trainer, tmp_path
):
    run, empty = trainer(), tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="has no safetensors weights"):
        adopt_model(store, empty, run)
    with pytest.raises(InputError, match="there is no folder"):
        adopt_model(store, tmp_path / "nowhere", run)
    with pytest.raises(InputError, match="an agent cannot be named 'a b'"):
        adopt_model(store, trained, run, name="a b")
    (trained / "run.py").write_text("")
    with pytest.raises(InputError, match="may contain code"):
        adopt_model(store, trained, run)
    assert not (store / "mlflow.db").exists()


def test_an_unknown_run_is_not_found(store, trained, trainer):
    trainer()
    with pytest.raises(NotFound, match="there is no run nobodys"):
        adopt_model(store, trained, "nobodys")
