"""The files in a step's folder."""

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
    """The simulator that an agent is trained for, chosen with its first weights."""

    simulator: Digest


class Practice(Record):
    """The result of the step `agent`: its run, and its attempts to open live environments."""

    run: AgentRun
    """The run as it was opened."""
    live_steps: int
    """Attempts to open a live environment during the training."""


class TrainedAgent(Practice):
    """The result of an agent's steps: a version, and its closed run."""

    version: VersionRef


def model_of(folder: Path) -> Path:
    """The model's files in the folder of a training stage."""
    return folder / MODEL


def checkpoint_of(folder: Path) -> Checkpoint:
    """The record of a training stage."""
    return Checkpoint.read(folder / CHECKPOINT)


def reuse_or_train(folder: Path, train: Callable[[], Checkpoint]) -> Checkpoint:
    """A training's result; a killed step does not repeat a finished training."""
    return checkpoint_of(folder) if (folder / CHECKPOINT).is_file() else train()


def verdict_of(folder: Path) -> GateVerdict:
    """The record of a gate."""
    return GateVerdict.read(folder / VERDICT)


def context_tokens_of(folder: Path) -> int:
    """The context length of a folder's model in tokens, prompt and answer together."""
    return context_tokens(model_of(folder))
