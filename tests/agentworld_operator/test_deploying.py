"""The step `deploy` before a real API server, an operator that guards it and a real service."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from fastapi import FastAPI

import make.chart
import make.many
import make.operator
import make.service
from agentworld.engine.fake import FakeEngine
from agentworld.errors import InputError, PipelineError
from agentworld.ledger import Ledger
from agentworld.operations.pinning import pin_model
from agentworld.operations.simulators import attach
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.report import Figures
from agentworld.serving.simulators.base import ConnectedSimulator
from agentworld.serving.simulators.cluster import ClusterSimulators, cluster_reader
from agentworld.storage.objects import ObjectStore
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld_pipelines.deploying import deploy_on_cluster
from agentworld_pipelines.placement import Placement
from make import records
from make.deploying import ACCOUNT, ALIAS, ONE, TWO, Step, allow, kubelet, may_write, named
from make.operator import RIGHTS
from make.weights import weights
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.waits

PLACEMENT = make.chart.ROOT / "docs/guides/placements/one-gpu.yaml"
RECIPE = "qwen3-0.6b-shell"


class World(NamedTuple):
    """A service of all Simulators of a namespace, with scripted engines."""

    store: Path
    app: FastAPI


@pytest.fixture
def world(kubernetes, namespace, tmp_path) -> World:
    store = tmp_path / "store"
    store.mkdir()
    objects = ObjectStore(str(store / "objects"))
    account = make.operator.kubeconfig(kubernetes, namespace, "agentworld-service")
    cluster = ClusterSimulators(
        cluster_reader(namespace.namespace, account),
        objects,
        make.service.ledger(store),
        lambda manifest: ConnectedSimulator(manifest, FakeEngine(make.service.shell), dict),
    )
    return World(store, make.many.app(store, cluster, kind=partial(Ledger, objects=objects)))


@pytest.fixture
def step(kubernetes, running, world, monkeypatch) -> Step:
    """A step in a namespace with a leading operator and without nodes."""
    allow(running.namespace)
    kubeconfig = make.operator.kubeconfig(kubernetes, running.namespace, ACCOUNT)
    deploy_step = Step(running.namespace, world.store, running.url, kubeconfig)
    for name, value in deploy_step.environment.items():
        monkeypatch.setenv(name, value)
    return deploy_step


@pytest.fixture
def nodes(namespace):
    with kubelet(namespace):
        yield


def versions(namespace) -> list[str]:
    kinds = ("Simulator", "SimulatorAlias")
    resources = [resource for kind in kinds for resource in namespace.all(kind).objects]
    return [resource["metadata"]["resourceVersion"] for resource in resources]


@pytest.mark.usefixtures("nodes")
def test_a_simulator_is_served_its_alias_moves_and_a_repeated_step_changes_nothing(step, running):
    folder = step.pinned()
    step_folder = step.run(folder)
    simulator = step.namespace.get("Simulator", named(ONE))
    weights = f"store/simulators/{ONE.digest[7:]}/model"
    assert simulator["spec"]["serving"]["weights"] == {"claim": "stores", "path": weights}
    assert step.namespace.conditions(named(ONE))["Ready"] == ("True", "Serving")
    (change,) = running.history(ALIAS)
    assert (change["simulator"], change["gate"]) == (
        ONE.digest,
        [{"metric": "exact_match", "least": 0.8, "value": 0.82}],
    )
    assert change["set_by"] == f"system:serviceaccount:{running.name}:{ACCOUNT}"
    wait_for(lambda: step.namespace.get("SimulatorAlias", ALIAS).get("status", {}).get("digest"))
    before = versions(step.namespace)
    assert step.run(folder) == step_folder
    (step_folder / "receipt.json").unlink()  # as if the step was killed before it wrote its receipt
    assert step.run(folder) == step_folder
    assert versions(step.namespace) == before


@pytest.mark.usefixtures("nodes")
def test_a_newer_simulator_takes_the_alias_and_an_older_step_does_not_return_it(step):
    first = step.pinned()
    step_folder = step.run(first)
    changes = {"canary": {"simulator": named(ONE), "percent": 10}, "override": {"reason": "a try"}}
    step.namespace.patch("SimulatorAlias", ALIAS, {"spec": changes})
    step.run(step.pinned(TWO))
    spec = step.alias()
    assert (spec["simulator"], spec["canary"]["percent"]) == (named(TWO), 10)
    assert "override" not in spec
    assert step.namespace.names("Simulator") == sorted([named(ONE), named(TWO)])
    assert step.run(first) == step_folder
    assert step.alias() == spec


@pytest.mark.usefixtures("nodes")
def test_a_repeated_step_does_not_undo_an_alias_move_by_a_person(step, running):
    folder = step.pinned()
    step_folder = step.run(folder)
    running.use("two")
    step.namespace.patch(
        "SimulatorAlias", ALIAS, {"spec": {"simulator": "two", "gate": [], "report": None}}
    )
    (step_folder / "receipt.json").unlink()
    step.run(folder)
    assert step.alias()["simulator"] == "two"


@pytest.mark.usefixtures("nodes")
def test_a_failed_gate_leaves_the_alias_unchanged(step, running):
    step.run(step.pinned())
    step.least = 0.9
    with pytest.raises(PipelineError) as refusal:
        step.run(step.pinned(TWO))
    assert str(refusal.value).startswith(
        "the cluster refuses it: exact_match is 0.82 in the report sha256:"
    )
    assert step.alias()["simulator"] == named(ONE)
    assert len(running.history(ALIAS)) == 1


def test_the_step_waits_for_the_successor_of_a_killed_operator(step, running):
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor())
        future = pool.submit(step.run, step.pinned())
        wait_for(lambda: step.namespace.get("Simulator", named(ONE)))
        running.operators["first"].kill()
        running.namespace.end_lease()
        stack.enter_context(kubelet(step.namespace))
        running.run("second")
        future.result(timeout=DEADLINE)
    assert step.alias()["simulator"] == named(ONE)


def test_a_step_killed_before_the_alias_move_resumes(step, running):
    folder = step.pinned()
    process = step.start(folder)
    try:
        wait_for(lambda: step.namespace.conditions(named(ONE)).get("Ready"))
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    before = step.namespace.get("Simulator", named(ONE))["metadata"]
    assert step.alias() is None
    with kubelet(step.namespace):
        step.run(folder)
    after = step.namespace.get("Simulator", named(ONE))["metadata"]
    assert [after[name] for name in ("uid", "generation")] == [
        before[name] for name in ("uid", "generation")
    ]
    assert len(running.history(ALIAS)) == 1


def test_a_simulator_that_is_never_ready_fails_the_step_with_the_reason(step):
    step.deployment["ready_seconds"] = 2
    with pytest.raises(PipelineError, match=r"is not ready: Starting: none of 1 replicas is ready"):
        step.run(step.pinned())
    assert step.alias() is None


def test_an_undeployable_simulator_is_refused_before_any_write(step):
    other_simulator = records.pinned(
        step.store, domains=records.pinned_domains(system_prompt="of another engine")
    )
    with pytest.raises(InputError, match="no evaluation of"):
        step.run(str(other_simulator.folder))
    attach(
        other_simulator,
        records.world_report(artifacts={"rl": other_simulator.manifest.artifact}),
        step.store,
    )
    with pytest.raises(InputError, match="pins transformers-serve, which cannot prove what it"):
        step.run(str(other_simulator.folder))
    recipe, store, folder, target = step.arguments(step.pinned())
    other_target = target.replace(str(step.store.parent), "/stores")
    with pytest.raises(InputError, match="is not on the claim stores, which is mounted at /stores"):
        deploy_on_cluster(recipe, store, folder, other_target)
    assert versions(step.namespace) == []


class Shipped(NamedTuple):
    """The step's arguments for the shipped recipe and placement, with the claim's folder here."""

    placement: Placement
    store: Path
    pinned: PinnedSimulator

    def run(self) -> None:
        deploy_on_cluster(RECIPE, str(self.store), str(self.pinned.folder), self.placement.target)


@pytest.fixture
def shipped(step, monkeypatch) -> Shipped:
    """The state after the earlier steps: the weights are evaluated and pinned."""
    text = PLACEMENT.read_text().replace("/stores", str(step.store))
    fields = yaml.safe_load(text)
    fields["deploy"]["ready_seconds"] = 60
    placement = Placement.model_validate(fields)
    for name, value in placement.of("simulate").environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AGENTWORLD_SERVICE_URL", step.url)
    store = step.store / "shell"
    (store / "weights").mkdir(parents=True)
    (store / "weights/model.safetensors").write_bytes(weights())
    artifact = SimulatorStore(store).import_model(store / "weights")
    recipe = load_recipe(recipe_path(RECIPE))
    simulator = pin_model(artifact, store / "weights", recipe, store, ["shell"])
    leads = dict.fromkeys(("copy", "nearest"), Figures(exact_match=records.estimate(0.3)))
    stages = {"rl": records.world_score().model_copy(update={"leads": leads})}
    report = records.world_report(stages=stages, artifacts={"rl": artifact.digest})
    attach(simulator, report, store)
    return Shipped(placement, store, simulator)


def test_the_shipped_recipe_and_placement_deploy_a_simulator_with_an_alias(
    step, running, shipped, monkeypatch, world, tmp_path, caplog
):
    """The Simulator is scaled to zero, and the service sends it one request."""
    caplog.set_level("INFO")
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL_FILE", str(tmp_path / "token"))
    with pytest.raises(InputError, match="the credential cannot be read from"):
        shipped.run()
    (tmp_path / "token").write_text("a-token\n")
    shipped.run()
    digest = shipped.pinned.digest
    name = f"shell-{digest[7:19]}"
    # The log has the state that the step saw: the operator may have started an engine since.
    assert f"{name}: Ready is True, Idle" in caplog.text
    (run,) = make.service.ledger(world.store).runs()
    assert (run.opening.agent, run.num_steps, run.opening.purpose) == ("probe", 1, "evaluation")
    assert run.closing
    spec = step.namespace.get("Simulator", name)["spec"]
    environment = shipped.placement.of("simulate").environment
    assert spec["identity"]["manifest"]["engine"]["image"] == environment["AGENTWORLD_ENGINE_IMAGE"]
    path = f"shell/simulators/{digest[7:]}/model"
    assert spec["serving"]["weights"] == {"claim": "agentworld-stores", "path": path}
    assert spec["serving"]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert step.namespace.get("SimulatorAlias", "shell")["spec"]["simulator"] == name
    (change,) = running.history("shell")
    gate = [
        {"metric": f"leads.{baseline}.exact_match", "least": 0.1, "value": 0.3}
        for baseline in ("copy", "nearest")
    ]
    assert (change["simulator"], change["gate"]) == (digest, gate)


@pytest.mark.usefixtures("nodes")
def test_an_existing_simulator_of_the_same_digest_is_used_unchanged(step, running):
    running.use("one")
    before = step.namespace.get("Simulator", "one")["spec"]
    step.run(step.pinned())
    assert step.alias()["simulator"] == "one"
    assert step.namespace.names("Simulator") == ["one"]
    assert step.namespace.get("Simulator", "one")["spec"] == before


def test_the_step_waits_through_temporarily_missing_rights(step, caplog):
    caplog.set_level("INFO")
    path = RIGHTS["Role"].path(step.namespace.namespace, ACCOUNT)
    rules = step.namespace.call("GET", path)["rules"]
    with ThreadPoolExecutor() as pool:
        future = pool.submit(step.run, step.pinned())
        wait_for(lambda: f"{named(ONE)}: Ready is False" in caplog.text)
        step.namespace.call("PATCH", path, {"rules": []})
        wait_for(lambda: "is forbidden" in caplog.text or future.done())
        step.namespace.call("PATCH", path, {"rules": rules})
        with kubelet(step.namespace):
            future.result(timeout=DEADLINE)
    assert step.alias()["simulator"] == named(ONE)


def test_a_step_without_write_rights_fails_with_the_refusal(step):
    path = RIGHTS["Role"].path(step.namespace.namespace, ACCOUNT)
    step.namespace.call("PATCH", path, {"rules": []})
    wait_for(lambda: not may_write(step.namespace))
    with pytest.raises(PipelineError, match=r"the cluster refuses it: .* is forbidden"):
        step.run(step.pinned())
