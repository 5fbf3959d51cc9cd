"""What lies where in a step's folder."""

from pathlib import Path

from agentworld.lineage.base import VersionRef
from agentworld.records.base import Record
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
UNTRAINED = "untrained"
TRAINED = "trained"
TRAJECTORY = "trajectory"


class TrainedAgent(Record):
    """What the step `agent` made: a version, its run, and the proof that no shell was near."""

    version: VersionRef
    run: AgentRun
    live_steps: int
    """Commands that ran in a live shell while the agent was trained."""


def model_of(folder: Path) -> Path:
    """The model's files in the folder of a training stage."""
    return folder / MODEL


def checkpoint_of(folder: Path) -> Checkpoint:
    """The record of a training stage."""
    return Checkpoint.read(folder / CHECKPOINT)


def verdict_of(folder: Path) -> GateVerdict:
    """The record of a gate."""
    return GateVerdict.read(folder / VERDICT)


def context_tokens_of(folder: Path) -> int:
    """How many tokens the model of a folder takes, prompt and answer together."""
    return context_tokens(model_of(folder))
