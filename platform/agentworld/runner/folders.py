"""What lies where in a step's folder."""

from collections.abc import Callable
from pathlib import Path

from agentworld.lineage.base import VersionRef
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.gate import GateVerdict
from agentworld.records.run import AgentRun
from agentworld.storage.causal_lm import context_tokens

MODEL = "model"
CHECKPOINT = "checkpoint.json"
REPORT = "report.json"
VERDICT = "verdict.json"
VERSION = "version.json"
MANIFEST = "manifest.json"
DEPLOYED = "deployed.json"
RUN = "run.json"
CHAIN = "chain.json"
SELECTED_SIMULATOR = "simulator.json"
PRACTICE = "practice.json"
AGENT = "agent.json"
ALIAS = "alias.json"
TRAJECTORY = "trajectory"
STAGE_PAGE = "training.html"


class SelectedSimulator(Record):
    """Which simulator an agent is made for, from its first weights on."""

    simulator: Digest


class Practice(Record):
    """What the step `agent` did: it trained in a run, and the proof that no shell was near."""

    run: AgentRun
    """As it was opened."""
    live_steps: int
    """Attempts to open a live environment while the agent was trained."""


class TrainedAgent(Practice):
    """What the steps of an agent made: a version, and its run as it was closed."""

    version: VersionRef


def model_of(folder: Path) -> Path:
    """The model's files in the folder of a training stage."""
    return folder / MODEL


def checkpoint_of(folder: Path) -> Checkpoint:
    """The record of a training stage."""
    return Checkpoint.read(folder / CHECKPOINT)


def reuse_or_train(folder: Path, train: Callable[[], Checkpoint]) -> Checkpoint:
    """A training's result; a killed step does not repeat a training that was finished."""
    return checkpoint_of(folder) if (folder / CHECKPOINT).is_file() else train()


def verdict_of(folder: Path) -> GateVerdict:
    """The record of a gate."""
    return GateVerdict.read(folder / VERDICT)


def context_tokens_of(folder: Path) -> int:
    """How many tokens the model of a folder takes, prompt and answer together."""
    return context_tokens(model_of(folder))
