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
from waiting import JOB_DEADLINE

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
    """A model of one layer with its own tokenizer, like a world model."""
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
        artifact = SimulatorStore(self.store).import_model(model)
        pinned = pin_model(artifact, model, load_recipe(path), self.store)
        checkpoint = records.checkpoint(
            "rl", artifact=pinned.manifest.artifact, data=records.digest("data")
        )
        world_model = WorldModel(stages=(checkpoint,), report=records.digest("report"))
        open_registry(self.store).register_world_model("shell", world_model, pinned.model)
        return pinned

    def say(self, _: endpoint.Request) -> str | int:
        """Answers as an engine; the first request after a checkpoint of the agent kills the
        service.
        """
        if self.service.lives == 1 and self.checkpoints():
            self.service.kill()
            return 503
        return "[0] ~"

    def checkpoints(self) -> list[Path]:
        return list(self.store.glob("steps/agent/*/checkpoints/*/manifest.json"))

    def run(self, simulator: str, **stores: str) -> Conclusion:
        """Runs the whole pipeline; returns its conclusion."""
        environment = {"AGENTWORLD_SERVICE_URL": self.service.url, **stores}
        (self.store / "placement.yaml").write_text(
            yaml.safe_dump({"default": {"environment": environment}})
        )
        result = subprocess.run(
            [sys.executable, "-c", RUN_PIPELINE, str(self.store), simulator],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                # A pod gets it from a Secret.
                "AGENTWORLD_CREDENTIAL": make.access.key("acme-agent"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=JOB_DEADLINE,
        )
        (self.store / "pipeline.log").write_text(result.stdout)
        conclusion = conclusions(self.store)[0]
        assert (result.returncode == 0) == (conclusion.state == "succeeded"), result.stdout[-5_000:]
        return conclusion

    def made(self, step: str) -> Path:
        """The folder of the only finished step of a name."""
        (finished_step,) = finished_steps(self.store, step)
        return finished_step.folder


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    store, folder = tmp_path / "store", tmp_path / "service"
    store.mkdir()
    folder.mkdir()
    scene = Scene(store)
    with (
        api_server(folder, scene.cluster) as kubeconfig,
        endpoint.running(scene.say) as engine,
    ):
        scene.service = ClusterService(folder, kubeconfig, engine.url, store / "keys" / STEP_KEYS)
        scene.service.start()
        try:
            yield scene
        finally:
            scene.service.kill()


def test_the_audit_traces_an_agent_to_a_run_of_a_service_killed_in_training(scene) -> None:
    service, pinned = scene.service, scene.pinned
    refusal = scene.run(pinned.digest)
    assert (refusal.state, refusal.step) == ("failed", "open_run")
    assert f"no Simulator has the digest {pinned.digest}" in refusal.sentence
    assert service.ledger.runs() == []

    scene.cluster.objects["simulators/shell"] = make.cluster.simulator("shell", pinned.manifest)
    service.ledger.aliases.set("terminal", pinned.digest, "ada")
    failure = scene.run("terminal")
    assert (failure.state, failure.step) == ("failed", "agent")
    assert "continues from its last checkpoint" in failure.sentence
    assert scene.checkpoints()

    service.start()
    success = scene.run("terminal", **service.stores)
    assert (success.state, success.sentence) == ("succeeded", "")
    check_ledger(scene)
    check_version(scene)


def check_ledger(scene: Scene) -> None:
    """The service's own ledger has the run, once, and all of the agent's observations."""
    ledger, closed_run = scene.service.ledger, AgentRun.read(scene.made("close_run") / RUN)
    by_purpose = Counter(run.opening.purpose for run in ledger.runs())
    assert by_purpose == {"training": 1, "evaluation": 3}  # base, imitated, trained
    assert ledger.run(closed_run.id) == closed_run
    assert (closed_run.simulator, closed_run.tenant) == (scene.pinned.digest, "acme")
    assert closed_run.final_weights == read_receipt(scene.made("agent")).output
    assert closed_run.closing.signature
    kinds = Counter(entry.fields["kind"] for entry in ledger.logs.entries(closed_run.id))
    assert (kinds["run-opened"], kinds["run-closed"]) == (1, 1)
    # Two of the first optimizer step, two that the kill left unfinished, and two that repeat these.
    assert closed_run.num_episodes == 6
    episodes = list(ledger.episodes(closed_run.id))
    assert {episode.simulator for episode in episodes} == {scene.pinned.digest}
    trajectory = read_trajectory(scene.made("agent") / TRAJECTORY)
    result = join_run(closed_run, episodes, trajectory)
    assert result.num_matched > 0
    assert not result.is_alarm
    assert not (scene.store / "ledger.db").exists()


def check_version(scene: Scene) -> None:
    """The version names its run and simulator, and its chain to the signed log has no problem."""
    run = AgentRun.read(scene.made("close_run") / RUN)
    agent = TrainedAgent.read(scene.made("register_agent") / AGENT)
    assert (str(agent.version), agent.run, agent.live_steps) == ("shell-agent@1", run, 0)
    version = open_registry(scene.store).agent(agent.version)
    assert (version.run, version.checkpoint.simulator) == (run.id, scene.pinned.digest)
    chain = AgentChain.read(scene.made("audit") / CHAIN)
    assert (chain.problems, chain.run, chain.world_model) == ((), run, "shell@1")
    assert (chain.evidence.grade, chain.evidence.weights) == ("verified", "signed")
    assert chain.live.episodes == 3
