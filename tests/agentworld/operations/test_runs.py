"""An agent's run from its opening to its version, without its training and its play."""

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
IMITATED_WEIGHTS, TRAINED_WEIGHTS = records.digest("imitated"), records.digest("trained")


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    make.ledger.laid(Stores.of(tmp_path).ledger_url)
    return tmp_path


@pytest.fixture
def simulator(store) -> PinnedSimulator:
    return records.pinned(store)


def imitate(store: Path, simulator: Digest) -> str:
    """The output of the step `imitate`."""
    folder = records.finished_step(store, "imitate", IMITATED_WEIGHTS, simulator=simulator)
    SelectedSimulator(simulator=simulator).write(folder / SELECTED_SIMULATOR)
    return str(folder)


def train(store: Path, run: AgentRun, weights: Digest = TRAINED_WEIGHTS) -> str:
    """The output of the step `agent`."""
    folder = records.finished_step(store, "agent", weights, run=run.digest)
    parents = (IMITATED_WEIGHTS,)
    agent = records.checkpoint("agent", artifact=weights, parents=parents, simulator=run.simulator)
    agent.write(folder / "checkpoint.json")
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/model.safetensors").write_bytes(b"trained")
    Practice(run=run, live_steps=0).write(folder / PRACTICE)
    return str(folder)


def validate(store: Path, simulator: Digest, weights: Digest = TRAINED_WEIGHTS) -> str:
    report = records.agent_report(simulator=simulator)
    folder = records.finished_step(
        store, "validate", report.digest, agent=weights, simulator=simulator
    )
    report.write(folder / REPORT)
    return str(folder)


def open_run(store: Path, simulator: PinnedSimulator) -> AgentRun:
    folder = run_step("open_run", RECIPE, str(store), imitate(store, simulator.digest))
    return AgentRun.read(Path(folder) / RUN)


def forget(folder: str) -> None:
    """Simulates a step that was killed just before its end."""
    (Path(folder) / "receipt.json").unlink()


def test_an_opened_run_has_its_starting_weights_and_its_simulator(store, simulator):
    run = open_run(store, simulator)
    assert run == open_ledger(store).run(run.id)
    assert run.simulator == run.opening.simulator == simulator.digest
    assert (run.opening.starting_weights, run.closing) == (IMITATED_WEIGHTS, None)


@pytest.mark.parametrize("missing_files", [(), (RUN,)], ids=["told", "not even told"])
def test_a_killed_opening_opens_no_second_run(store, simulator, missing_files):
    folder = run_step("open_run", RECIPE, str(store), imitate(store, simulator.digest))
    run = AgentRun.read(Path(folder) / RUN)
    forget(folder)
    for name in missing_files:
        (Path(folder) / name).unlink()
    assert run_step("open_run", RECIPE, str(store), imitate(store, simulator.digest)) == folder
    assert AgentRun.read(Path(folder) / RUN) == run
    assert open_ledger(store).runs() == [run]


def test_a_run_keeps_the_simulator_of_its_starting_weights_when_the_alias_moves(store, simulator):
    set_alias("shell", simulator.digest, store, "me")
    folder = imitate(store, simulator.digest)
    new_simulator = records.pinned(store, context_tokens=512)
    set_alias("shell", new_simulator.digest, store, "me")
    run = AgentRun.read(Path(run_step("open_run", RECIPE, str(store), folder)) / RUN)
    assert run.simulator == simulator.digest


def test_a_run_is_closed_with_signed_weights_and_its_record_verifies(store, simulator):
    run = open_run(store, simulator)
    folder = run_step("close_run", RECIPE, str(store), train(store, run))
    closed_run = AgentRun.read(Path(folder) / RUN)
    assert closed_run.final_weights == TRAINED_WEIGHTS
    evidence = open_evidence(store)
    assert isinstance(evidence, Evidence)
    verification = verify_run(run.id, open_ledger(store), evidence)
    assert (verification.problems, verification.weights) == ((), "signed")


@pytest.mark.parametrize("is_rotated", [False, True])
def test_repeating_a_killed_closing_changes_nothing_even_after_a_key_rotation(
    store, simulator, is_rotated
):
    agent_folder = train(store, open_run(store, simulator))
    first_folder = run_step("close_run", RECIPE, str(store), agent_folder)
    closed_run = AgentRun.read(Path(first_folder) / RUN)
    forget(first_folder)
    if is_rotated:
        rotate_key(store, STEP_KEYS)
    second_folder = run_step("close_run", RECIPE, str(store), agent_folder)
    assert AgentRun.read(Path(second_folder) / RUN) == closed_run


def test_closing_a_closed_run_with_other_weights_is_refused(store, simulator):
    run = open_run(store, simulator)
    run_step("close_run", RECIPE, str(store), train(store, run))
    with pytest.raises(Conflict, match="was closed with other weights"):
        run_step("close_run", RECIPE, str(store), train(store, run, records.digest("others")))


def test_an_agent_is_registered_once_with_its_run_and_its_validation(store, simulator):
    from agentworld.operations.registry import open_registry

    run = open_run(store, simulator)
    agent_folder, validation = train(store, run), validate(store, simulator.digest)
    arguments = (
        RECIPE,
        str(store),
        agent_folder,
        run_step("close_run", RECIPE, str(store), agent_folder),
        validation,
    )
    first_folder = run_step("register_agent", *arguments)
    trained_agent = TrainedAgent.read(Path(first_folder) / AGENT)
    forget(first_folder)
    assert TrainedAgent.read(Path(run_step("register_agent", *arguments)) / AGENT) == trained_agent
    assert (str(trained_agent.version), trained_agent.live_steps) == ("shell-agent@1", 0)
    assert trained_agent.run.final_weights == TRAINED_WEIGHTS
    registry = open_registry(store)
    assert registry.agents_of(run.id) == [trained_agent.version]
    report = records.agent_report(simulator=simulator.digest).digest
    assert registry.agent(trained_agent.version).report == report
    files_problem, steps_problem = verify_agent(trained_agent.version, open_sources(store)).problems
    assert "mirror differs in files" in files_problem  # which stand in for trained files
    assert "the simulator answered no step of the run" in steps_problem


def test_a_validation_or_a_run_of_another_agent_is_refused(store, simulator):
    run = open_run(store, simulator)
    agent_folder = train(store, run)
    close_folder = run_step("close_run", RECIPE, str(store), agent_folder)
    validation = validate(store, simulator.digest, records.digest("others"))
    with pytest.raises(InputError, match="validated another agent than"):
        run_step("register_agent", RECIPE, str(store), agent_folder, close_folder, validation)
    other_folder = train(store, run, records.digest("others"))
    with pytest.raises(InputError, match=f"is of a run that made {TRAINED_WEIGHTS}, not"):
        run_step("register_agent", RECIPE, str(store), other_folder, close_folder, validation)


def test_a_simulator_without_weights_cannot_start_an_agent(store):
    engine = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    simulator = records.pinned(store, artifact=None, files={}, engine=engine)
    set_alias("shell", simulator.digest, store, "me")
    collect_folder = str(records.finished_step(store, "collect", records.digest("collected")))
    for name in ("", "shell", simulator.digest[:20], str(simulator.folder)):
        with pytest.raises(InputError, match="has no weights that an agent could start from"):
            run_step("imitate", RECIPE, str(store), collect_folder, name)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("name", ["", "gone", "sha256:00"])
def test_a_missing_simulator_is_not_found(store, name):
    collect_folder = str(records.finished_step(store, "collect", records.digest("collected")))
    with pytest.raises(NotFound, match="there is no simulator"):
        run_step("imitate", RECIPE, str(store), collect_folder, name)


@pytest.mark.usefixtures("simulator")
def test_the_error_for_an_unknown_name_mentions_alias_and_digest(store):
    collect_folder = str(records.finished_step(store, "collect", records.digest("collected")))
    message = f"^there is no alias 'gone' in {store}, and there is no simulator sha256:gone in"
    with pytest.raises(NotFound, match=message):
        run_step("imitate", RECIPE, str(store), collect_folder, "gone")


def test_unregistered_weights_cannot_start_an_agent(store, simulator):
    collect_folder = str(records.finished_step(store, "collect", records.digest("collected")))
    with pytest.raises(InputError, match="no registered version has the weights of sha256"):
        run_step("imitate", RECIPE, str(store), collect_folder, simulator.digest)
    assert not (store / "mlflow.db").exists()


@pytest.fixture
def elsewhere(tmp_path_factory, monkeypatch, simulator):
    """A deployed service with that simulator and its own ledger."""
    folder = tmp_path_factory.mktemp("elsewhere")
    service = make.service.service(folder, pinned=simulator.manifest)
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        yield folder


def test_a_deployed_services_ledger_has_the_run_and_the_stores_ledger_does_not(
    store, simulator, elsewhere, monkeypatch
):
    run = open_run(store, simulator)
    assert open_ledger(elsewhere).run(run.id) == run
    assert open_ledger(store).runs() == []
    # The steps have its keys too, as with a chart's ConfigMap.
    monkeypatch.setenv("AGENTWORLD_KEYS", str(Stores.of(elsewhere).keys))
    folder = run_step("close_run", RECIPE, str(store), train(store, run))
    closed_run = AgentRun.read(Path(folder) / RUN)
    assert closed_run == open_ledger(elsewhere).run(run.id)
    assert closed_run.closing.signature


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
    return sum(address.endswith(f":{port}") and state == "01" for _, _, address, state, *_ in rows)


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
    other_simulator = records.pinned(store, context_tokens=512)
    with pytest.raises(SimulatorError, match="a run never changes its simulator") as error:
        open_run(store, other_simulator)
    assert error.value.kind == "swapped"
    assert open_ledger(store).runs() == []


def test_a_training_with_changed_code_gets_a_new_run(store, simulator, monkeypatch):
    folder = imitate(store, simulator.digest)
    first_folder = run_step("open_run", RECIPE, str(store), folder)
    calls = []

    def digest_of(step, domains):
        calls.append((step, domains))
        return records.digest("other code")

    monkeypatch.setattr("agentworld.steps.open_run.code_digest", digest_of)
    assert run_step("open_run", RECIPE, str(store), folder) != first_folder
    assert calls == [("agent", ("shell",))]
