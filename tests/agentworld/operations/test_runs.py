"""An agent's run from its opening to its version; what trains and what plays is left out."""

import asyncio
import gc
import os
from pathlib import Path

import pytest

import make.ledger
import make.service
from agentworld.audit.checks.run import verify_run
from agentworld.audit.checks.store import verify_agent
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import Conflict, InputError, NotFound, SimulatorError
from agentworld.operations.ledger import open_evidence, open_ledger, open_sources, rotate_key
from agentworld.operations.serving import open_client
from agentworld.operations.simulators import set_alias
from agentworld.records.base import Digest
from agentworld.records.run import AgentRun
from agentworld.runner.folders import (
    AGENT,
    PRACTICE,
    REPORT,
    RUN,
    SELECTED_SIMULATOR,
    Practice,
    SelectedSimulator,
    TrainedAgent,
)
from agentworld.signing.keys import STEP_KEYS
from agentworld.steps.run import run_by_name as run_step
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.stores import Stores
from make import records

pytestmark = pytest.mark.compute

RECIPE = "smoke"
IMITATED, TRAINED = records.digest("imitated"), records.digest("trained")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    make.ledger.laid(Stores.of(tmp_path).ledger_url)
    return tmp_path


@pytest.fixture
def simulator(store) -> PinnedSimulator:
    return records.pinned(store)


def imitated(store: Path, simulator: Digest) -> str:
    """The output of the step `imitate`."""
    folder = records.finished_step(store, "imitate", IMITATED, simulator=simulator)
    SelectedSimulator(simulator=simulator).write(folder / SELECTED_SIMULATOR)
    return str(folder)


def practised(store: Path, run: AgentRun, weights: Digest = TRAINED) -> str:
    """The output of the step `agent`."""
    folder = records.finished_step(store, "agent", weights, run=run.digest)
    parents = (IMITATED,)
    made = records.checkpoint("agent", artifact=weights, parents=parents, simulator=run.simulator)
    made.write(folder / "checkpoint.json")
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/model.safetensors").write_bytes(b"trained")
    Practice(run=run, live_steps=0).write(folder / PRACTICE)
    return str(folder)


def validated(store: Path, simulator: Digest, weights: Digest = TRAINED) -> str:
    report = records.agent_report(simulator=simulator)
    folder = records.finished_step(
        store, "validate", report.digest, agent=weights, simulator=simulator
    )
    report.write(folder / REPORT)
    return str(folder)


def opened(store: Path, simulator: PinnedSimulator) -> AgentRun:
    folder = run_step("open_run", RECIPE, str(store), imitated(store, simulator.digest))
    return AgentRun.read(Path(folder) / RUN)


def forget(folder: str) -> None:
    """Simulates a step that was killed just before its end."""
    (Path(folder) / "receipt.json").unlink()


def test_an_opened_run_has_its_starting_weights_and_its_simulator(store, simulator):
    run = opened(store, simulator)
    assert run == open_ledger(store).run(run.id)
    assert run.simulator == run.opening.simulator == simulator.digest
    assert (run.opening.starting_weights, run.closing) == (IMITATED, None)


@pytest.mark.parametrize("lost", [(), (RUN,)], ids=["told", "not even told"])
def test_a_killed_opening_opens_no_second_run(store, simulator, lost):
    first = run_step("open_run", RECIPE, str(store), imitated(store, simulator.digest))
    run = AgentRun.read(Path(first) / RUN)
    forget(first)
    for name in lost:
        (Path(first) / name).unlink()
    assert run_step("open_run", RECIPE, str(store), imitated(store, simulator.digest)) == first
    assert AgentRun.read(Path(first) / RUN) == run
    assert open_ledger(store).runs() == [run]


def test_a_run_keeps_the_simulator_of_its_starting_weights_when_the_alias_moves(store, simulator):
    set_alias("shell", simulator.digest, store, "me")
    folder = imitated(store, simulator.digest)
    other = records.pinned(store, context_tokens=512)
    set_alias("shell", other.digest, store, "me")
    run = AgentRun.read(Path(run_step("open_run", RECIPE, str(store), folder)) / RUN)
    assert run.simulator == simulator.digest


def test_a_run_is_closed_with_signed_weights_and_its_record_verifies(store, simulator):
    run = opened(store, simulator)
    folder = run_step("close_run", RECIPE, str(store), practised(store, run))
    closed = AgentRun.read(Path(folder) / RUN)
    assert closed.final_weights == TRAINED
    evidence = open_evidence(store)
    assert isinstance(evidence, Evidence)
    found = verify_run(run.id, open_ledger(store), evidence)
    assert (found.problems, found.weights) == ((), "signed")


@pytest.mark.parametrize("rotated", [False, True])
def test_repeating_a_killed_closing_changes_nothing_even_after_a_key_rotation(
    store, simulator, rotated
):
    agent_folder = practised(store, opened(store, simulator))
    first = run_step("close_run", RECIPE, str(store), agent_folder)
    closed = AgentRun.read(Path(first) / RUN)
    forget(first)
    if rotated:
        rotate_key(store, STEP_KEYS)
    again = run_step("close_run", RECIPE, str(store), agent_folder)
    assert AgentRun.read(Path(again) / RUN) == closed


def test_closing_a_closed_run_with_other_weights_is_refused(store, simulator):
    run = opened(store, simulator)
    run_step("close_run", RECIPE, str(store), practised(store, run))
    with pytest.raises(Conflict, match="was closed with other weights"):
        run_step("close_run", RECIPE, str(store), practised(store, run, records.digest("others")))


def test_an_agent_is_registered_once_with_its_run_and_its_validation(store, simulator):
    from agentworld.operations.registry import open_registry

    run = opened(store, simulator)
    trained, validation = practised(store, run), validated(store, simulator.digest)
    arguments = (
        RECIPE,
        str(store),
        trained,
        run_step("close_run", RECIPE, str(store), trained),
        validation,
    )
    first = run_step("register_agent", *arguments)
    made = TrainedAgent.read(Path(first) / AGENT)
    forget(first)
    assert TrainedAgent.read(Path(run_step("register_agent", *arguments)) / AGENT) == made
    assert (str(made.version), made.live_steps) == ("shell-agent@1", 0)
    assert made.run.final_weights == TRAINED
    registry = open_registry(store)
    assert registry.agents_of(run.id) == [made.version]
    report = records.agent_report(simulator=simulator.digest).digest
    assert registry.agent(made.version).report == report
    files, unplayed = verify_agent(made.version, open_sources(store)).problems
    assert "mirror differs in files" in files  # which stand in for what was trained
    assert "the simulator answered no step of the run" in unplayed


def test_a_validation_or_a_run_of_another_agent_is_refused(store, simulator):
    run = opened(store, simulator)
    trained = practised(store, run)
    closed = run_step("close_run", RECIPE, str(store), trained)
    other = validated(store, simulator.digest, records.digest("others"))
    with pytest.raises(InputError, match="validated another agent than"):
        run_step("register_agent", RECIPE, str(store), trained, closed, other)
    others = practised(store, run, records.digest("others"))
    with pytest.raises(InputError, match=f"is of a run that made {TRAINED}, not"):
        run_step("register_agent", RECIPE, str(store), others, closed, other)


def test_a_simulator_without_weights_cannot_start_an_agent(store):
    there = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    prompted = records.pinned(store, artifact=None, files={}, engine=there)
    set_alias("shell", prompted.digest, store, "me")
    collected = str(records.finished_step(store, "collect", records.digest("collected")))
    for name in ("", "shell", prompted.digest[:20], str(prompted.folder)):
        with pytest.raises(InputError, match="has no weights that an agent could start from"):
            run_step("imitate", RECIPE, str(store), collected, name)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("name", ["", "gone", "sha256:00"])
def test_a_missing_simulator_is_not_found(store, name):
    collected = str(records.finished_step(store, "collect", records.digest("collected")))
    with pytest.raises(NotFound, match="there is no simulator"):
        run_step("imitate", RECIPE, str(store), collected, name)


@pytest.mark.usefixtures("simulator")
def test_the_error_for_an_unknown_name_mentions_alias_and_digest(store):
    collected = str(records.finished_step(store, "collect", records.digest("collected")))
    told = f"^there is no alias 'gone' in {store}, and there is no simulator sha256:gone in"
    with pytest.raises(NotFound, match=told):
        run_step("imitate", RECIPE, str(store), collected, "gone")


def test_unregistered_weights_cannot_start_an_agent(store, simulator):
    collected = str(records.finished_step(store, "collect", records.digest("collected")))
    with pytest.raises(InputError, match="no registered version has the weights of sha256"):
        run_step("imitate", RECIPE, str(store), collected, simulator.digest)
    assert not (store / "mlflow.db").exists()


@pytest.fixture
def elsewhere(tmp_path_factory, monkeypatch, simulator):
    """A deployed service with that simulator and its own ledger."""
    place = tmp_path_factory.mktemp("elsewhere")
    service = make.service.service(place, pinned=simulator.manifest)
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        yield place


def test_a_deployed_services_ledger_has_the_run_and_the_stores_ledger_does_not(
    store, simulator, elsewhere, monkeypatch
):
    run = opened(store, simulator)
    assert open_ledger(elsewhere).run(run.id) == run
    assert open_ledger(store).runs() == []
    # Its keys are the steps' too, as a chart's ConfigMap makes them.
    monkeypatch.setenv("AGENTWORLD_KEYS", str(Stores.of(elsewhere).keys))
    folder = run_step("close_run", RECIPE, str(store), practised(store, run))
    closed = AgentRun.read(Path(folder) / RUN)
    assert closed == open_ledger(elsewhere).run(run.id)
    assert closed.closing.signature


def test_a_step_uses_a_deployed_service_and_starts_no_server(store, simulator, elsewhere):
    logs = store / "logs"

    async def play(client) -> str:
        episode = await make.service.play(client, "echo kolu")
        await client.close()
        return episode

    with open_client(simulator.digest, 2, store, logs) as client:
        episode = asyncio.run(play(client))
    assert [step.action for step in open_ledger(elsewhere).episode(episode).steps] == ["echo kolu"]
    assert not logs.exists()


def num_connections(url: str) -> int:
    """This process's connections to the port of an address."""
    port = f"{int(url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(there.endswith(f":{port}") and state == "01" for _, _, there, state, *_ in rows)


@pytest.mark.usefixtures("elsewhere")
def test_the_connections_to_a_deployed_service_end_with_the_block(store, simulator):
    url = os.environ["AGENTWORLD_SERVICE_URL"]
    with open_client(simulator.digest, 1, store, store / "logs") as client:
        asyncio.run(client.manifest())
        assert num_connections(url) == 1
    gc.collect()
    assert num_connections(url) == 0


@pytest.mark.usefixtures("elsewhere")
def test_a_deployed_service_with_another_simulator_is_refused(store):
    other = records.pinned(store, context_tokens=512)
    with pytest.raises(SimulatorError, match="a run never changes its simulator") as refused:
        opened(store, other)
    assert refused.value.kind == "swapped"
    assert open_ledger(store).runs() == []


def test_a_training_with_changed_code_gets_a_new_run(store, simulator, monkeypatch):
    folder = imitated(store, simulator.digest)
    first = run_step("open_run", RECIPE, str(store), folder)
    asked = []

    def changed(step, domains):
        asked.append((step, domains))
        return records.digest("other code")

    monkeypatch.setattr("agentworld.steps.open_run.code_digest", changed)
    assert run_step("open_run", RECIPE, str(store), folder) != first
    assert asked == [("agent", ("shell",))]
