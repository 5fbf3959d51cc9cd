"""A run's two logs as Parquet, for whoever trains, filters or checks with other tools.

    transitions.parquet    what the simulator answered: a row for each step of the ledger
    trajectories.parquet   what the agent did and saw: a row for each step of its own log

Both name run, episode and step, by which they can be joined. Texts are binary (UTF-8, and a lone
surrogate as it would be in it), for they may be no Unicode. Each column says in the file itself
what it holds. A file appears when it is whole.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from agentworld.records.episode import Episode, EpisodeStep, text_bytes, text_digest
from agentworld.records.trajectory_log import TrajectoryStep
from agentworld.storage.parquet import Row, RowWriter

TRANSITIONS = "transitions.parquet"
TRAJECTORIES = "trajectories.parquet"


def _column(name: str, kind: pa.DataType, about: str, *, null: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=null, metadata={"about": about})


_PLACE = [
    _column("run", pa.string(), "the agent's run"),
    _column("simulator", pa.string(), "digest of the simulator that answered"),
    _column("episode", pa.string(), "the episode"),
    _column("step", pa.int64(), "number of the step in its episode; 1 for the first"),
]
_REWARD = _column(
    "reward", pa.float64(), "null without a task, and while a task is still open", null=True
)
_LOW_CONFIDENCE = _column(
    "low_confidence", pa.bool_(), "below the manifest's threshold; to be masked"
)
TRANSITION_SCHEMA = pa.schema(
    [
        *_PLACE,
        _column("task", pa.string(), "id of its task; null without one, or erased", null=True),
        _column(
            "copied", pa.bool_(), "the step came with a fork: the agent of another episode took it"
        ),
        _column("action", pa.binary(), "what was sent; null where it was erased", null=True),
        _column("observation", pa.binary(), "what was answered; null where erased", null=True),
        _column("action_digest", pa.string(), "of the bytes of the action"),
        _column("observation_digest", pa.string(), "of the bytes of the observation"),
        _REWARD,
        _column("done", pa.bool_(), "no step follows"),
        _column("truncated", pa.bool_(), "done because of the turn limit"),
        _column("mean_logprob", pa.float64(), "of the answer's tokens, if known", null=True),
        _column("agreement", pa.float64(), "share of further samples that agree", null=True),
        _LOW_CONFIDENCE,
        _column("head", pa.string(), "of the episode's chain after this step"),
    ]
)
TRAJECTORY_SCHEMA = pa.schema(
    [
        *_PLACE,
        _column("policy", pa.string(), "digest of the weights it started from", null=True),
        _column("policy_step", pa.int64(), "optimizer steps since then", null=True),
        _column("sampled", pa.binary(), "all that the policy wrote, the action among it"),
        _column("action", pa.binary(), "what was sent"),
        _column("action_digest", pa.string(), "of the bytes of the action"),
        _REWARD,
        _column("observation_digest", pa.string(), "of the bytes of the observation seen"),
        _LOW_CONFIDENCE,
    ]
)


def write_transitions(path: Path, episodes: Iterable[Episode]) -> int:
    """Writes the steps of these episodes; returns how many."""
    with RowWriter(path, TRANSITION_SCHEMA) as file:
        for episode in episodes:
            for step in episode.steps:
                file.add(_transition(episode, step))
    return file.num_rows


def write_trajectories(path: Path, steps: Iterable[TrajectoryStep]) -> int:
    """Writes these steps; returns how many."""
    with RowWriter(path, TRAJECTORY_SCHEMA) as file:
        for step in steps:
            file.add(_trajectory(step))
    return file.num_rows


def _transition(episode: Episode, step: EpisodeStep) -> Row:
    task, confidence = episode.opening and episode.opening.task, step.confidence
    return {
        "run": episode.run,
        "simulator": episode.simulator,
        "episode": episode.id,
        "step": step.number,
        "task": task and task.id,
        "copied": step.number <= episode.num_copied,
        "action": _bytes(step.action),
        "observation": _bytes(step.observation),
        "action_digest": step.action_digest,
        "observation_digest": step.observation_digest,
        "reward": step.reward,
        "done": step.done,
        "truncated": step.truncated,
        "mean_logprob": confidence.mean_logprob,
        "agreement": confidence.agreement,
        "low_confidence": confidence.low,
        "head": step.head,
    }


def _trajectory(step: TrajectoryStep) -> Row:
    return {
        **step._asdict(),
        "sampled": text_bytes(step.sampled),
        "action": text_bytes(step.action),
        "action_digest": text_digest(step.action),
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text_bytes(text)
