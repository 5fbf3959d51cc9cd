"""Exports a run's two logs as files."""

from collections.abc import Iterator
from pathlib import Path

from agentworld.client.trajectory import read_trajectory
from agentworld.ledger import Ledger
from agentworld.records.base import Record
from agentworld.records.trajectory_log import TrajectoryStep
from agentworld.storage.exports import (
    TRAJECTORIES,
    TRANSITIONS,
    write_trajectories,
    write_transitions,
)


class RunExport(Record):
    """The files that were written."""

    run: str
    transitions: str
    """The path of the simulator's transitions."""
    num_transitions: int
    trajectories: str | None
    """The path of the agent's trajectories; null if no trajectory was given."""
    num_trajectories: int | None


def export_run(name: str, ledger: Ledger, out: Path, trajectory: Path | None) -> RunExport:
    """Writes a run to `out`, with the lines of a trajectory that belong to it."""
    run = ledger.run(name).id
    out.mkdir(parents=True, exist_ok=True)
    num_transitions = write_transitions(out / TRANSITIONS, ledger.episodes(run))
    num_trajectories = None
    if trajectory:
        num_trajectories = write_trajectories(out / TRAJECTORIES, _steps_of(run, trajectory))
    return RunExport(
        run=run,
        transitions=str(out / TRANSITIONS),
        num_transitions=num_transitions,
        trajectories=str(out / TRAJECTORIES) if trajectory else None,
        num_trajectories=num_trajectories,
    )


def _steps_of(run: str, trajectory: Path) -> Iterator[TrajectoryStep]:
    lines = read_trajectory(trajectory)
    return (line for line in lines if isinstance(line, TrajectoryStep) and line.run == run)
