"""The complete, real pipeline of an agent, with a cluster's service for the runs.

Its steps are processes, as Kubeflow's own runner starts them. The simulator has no model, because
the test is about requests and ledgers. The agent is a tiny model.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import make.access
import make.cluster
from agentworld.audit.questions.agent import AgentChain
from agentworld.audit.questions.join import join_run
from agentworld.client.trajectory import read_trajectory
from agentworld.domains.shell.pretokenizer import pretokenizer_pattern
from agentworld.domains.words import all_words
from agentworld.lineage.base import WorldModel
from agentworld.operations.pinning import pin_model
from agentworld.operations.registry import open_registry
from agentworld.recipes import load_recipe
from agentworld.recipes.train import ModelRecipe
from agentworld.records.conclusion import Conclusion
from agentworld.records.run import AgentRun
from agentworld.runner.folders import AGENT, CHAIN, RUN, TRAJECTORY, TrainedAgent
from agentworld.signing.keys import STEP_KEYS
from agentworld.steps.conclude import conclusions
from agentworld.storage.receipts import finished_steps, read_receipt
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld.storage.trajectories import write_trajectories
from fakes import endpoint
from fakes.cluster_service import ClusterService, api_server
from make import records

pytestmark = [pytest.mark.compute, pytest.mark.long]

MODEL = ModelRecipe(hidden_size=32, intermediate_size=64, num_layers=1, head_size=8)
RUN_PIPELINE = """
import sys
from pathlib import Path
from kfp import local
from agentworld_pipelines.agent import agent
from agentworld_pipelines.placement import load_placement
store, simulator = sys.argv[1:]
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=store + "/kfp")
pipeline = agent(load_placement(Path(store + "/placement.yaml")))
pipeline(recipe=store + "/tiny.yaml", store=store, simulator=simulator)
"""


def tiny_world(folder: Path) -> Path:
    """A model of one layer with its own tokenizer, as a world model has it."""
    from agentworld.train.model import new_model
    from agentworld.train.tokenizer import train_tokenizer

    new_model(MODEL, train_tokenizer(all_words()[:200], pretokenizer_pattern(), 400)).save(folder)
    return folder


class Scene:
    """A store with a registered world model that is pinned, and a service that may serve it."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.cluster = make.cluster.Cluster()
        self.service: ClusterService | None = None
        self.pinned = self._pin()

    def _pin(self) -> PinnedSimulator:
        task = records.task()
        episodes = [records.trajectory(task=task, seed=seed) for seed in range(6)]
        write_trajectories(self.store / "recorded.jsonl", episodes)
        recipe = {
            "name": "tiny",
            "collect": {"trajectories": str(self.store / "recorded.jsonl")},
            "simulate": {"domains": {"shell": None}},
            "engine": {"batch_tokens": 64, "cache_blocks": 256, "concurrency": 2},
            "agent": {
                "name": "shell-agent",
                "imitation": {"stage": "imitation", "tokens_per_batch": 256},
                "rl": {
                    "num_steps": 2,
                    "prompts_per_step": 1,
                    "group_size": 2,
                    "max_tokens": 4,
                    "checkpoint_every": 1,
                },
            },
            "validation": {"num_tasks": 1, "num_resamples": 10},
        }
        path = self.store / "tiny.yaml"
        path.write_text(yaml.safe_dump(recipe))
        model = tiny_world(self.store / "world")
        taken_in = SimulatorStore(self.store).import_model(model)
        pinned = pin_model(taken_in, model, load_recipe(path), self.store)
        made = records.checkpoint(
            "rl", artifact=pinned.manifest.artifact, data=records.digest("data")
        )
        what = WorldModel(stages=(made,), report=records.digest("report"))
        open_registry(self.store).register_world_model("shell", what, pinned.model)
        return pinned

    def say(self, _: endpoint.Asked) -> str | int:
        """An engine's answer; the first one after a checkpoint of the agent's costs the service
        its life.
        """
        if self.service.lives == 1 and self.checkpoints():
            self.service.kill()
            return 503
        return "[0] ~"

    def checkpoints(self) -> list[Path]:
        return list(self.store.glob("steps/agent/*/checkpoints/*/manifest.json"))

    def run(self, simulator: str, **stores: str) -> Conclusion:
        """Runs the whole pipeline; returns how it ended."""
        told = {"AGENTWORLD_SERVICE_URL": self.service.url, **stores}
        (self.store / "placement.yaml").write_text(
            yaml.safe_dump({"default": {"environment": told}})
        )
        done = subprocess.run(
            [sys.executable, "-c", RUN_PIPELINE, str(self.store), simulator],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                # A pod has it from a Secret.
                "AGENTWORLD_CREDENTIAL": make.access.key("acme-agent"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=500,
        )
        (self.store / "pipeline.log").write_text(done.stdout)
        found = conclusions(self.store)[0]
        assert (done.returncode == 0) == (found.state == "succeeded"), done.stdout[-5_000:]
        return found

    def made(self, step: str) -> Path:
        """The folder of a step that was done, of which there has to be one."""
        (found,) = finished_steps(self.store, step)
        return found.folder


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    store, place = tmp_path / "store", tmp_path / "service"
    store.mkdir()
    place.mkdir()
    scene = Scene(store)
    with (
        api_server(place, scene.cluster) as kubeconfig,
        endpoint.running(scene.say) as engine,
    ):
        scene.service = ClusterService(place, kubeconfig, engine.url, store / "keys" / STEP_KEYS)
        scene.service.start()
        try:
            yield scene
        finally:
            scene.service.kill()


def test_the_audit_traces_an_agent_to_a_run_of_a_service_killed_in_training(scene) -> None:
    service, pinned = scene.service, scene.pinned
    refused = scene.run(pinned.digest)
    assert (refused.state, refused.step) == ("failed", "open_run")
    assert f"no Simulator has the digest {pinned.digest}" in refused.sentence
    assert service.ledger.runs() == []

    scene.cluster.objects["simulators/shell"] = make.cluster.simulator("shell", pinned.manifest)
    service.ledger.aliases.set("terminal", pinned.digest, "ada")
    killed = scene.run("terminal")
    assert (killed.state, killed.step) == ("failed", "agent")
    assert "continues from its last checkpoint" in killed.sentence
    assert scene.checkpoints()

    service.start()
    ended = scene.run("terminal", **service.stores)
    assert (ended.state, ended.sentence) == ("succeeded", "")
    check_ledger(scene)
    check_version(scene)


def check_ledger(scene: Scene) -> None:
    """The service's own ledger has the run, once, and all of the agent's observations."""
    ledger, closed = scene.service.ledger, AgentRun.read(scene.made("close_run") / RUN)
    by_purpose = Counter(each.opening.purpose for each in ledger.runs())
    assert by_purpose == {"training": 1, "evaluation": 3}  # base, imitated, trained
    assert ledger.run(closed.id) == closed
    assert (closed.simulator, closed.tenant) == (scene.pinned.digest, "acme")
    assert closed.final_weights == read_receipt(scene.made("agent")).output
    assert closed.closing.signature
    kinds = Counter(entry.fields["kind"] for entry in ledger.logs.entries(closed.id))
    assert (kinds["run-opened"], kinds["run-closed"]) == (1, 1)
    # Two of the first optimizer step, two that the kill left without an end, and their repetition.
    assert closed.num_episodes == 6
    episodes = list(ledger.episodes(closed.id))
    assert {each.simulator for each in episodes} == {scene.pinned.digest}
    acted = read_trajectory(scene.made("agent") / TRAJECTORY)
    joined = join_run(closed, episodes, acted)
    assert joined.num_matched > 0
    assert not joined.is_alarm
    assert not (scene.store / "ledger.db").exists()


def check_version(scene: Scene) -> None:
    """It names the run and its simulator, and nothing between it and the signed log is broken."""
    run = AgentRun.read(scene.made("close_run") / RUN)
    made = TrainedAgent.read(scene.made("register_agent") / AGENT)
    assert (str(made.version), made.run, made.live_steps) == ("shell-agent@1", run, 0)
    registered = open_registry(scene.store).agent(made.version)
    assert (registered.run, registered.checkpoint.simulator) == (run.id, scene.pinned.digest)
    chain = AgentChain.read(scene.made("audit") / CHAIN)
    assert (chain.problems, chain.run, chain.world_model) == ((), run, "shell@1")
    assert (chain.evidence.grade, chain.evidence.weights) == ("verified", "signed")
    assert chain.live.episodes == 3
