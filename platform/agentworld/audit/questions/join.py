"""Compares a run's two logs, which the simulator and the agent wrote independently.

A step only in the ledger was lost by the agent's log. A step only in the trajectory was never
answered by a simulator, and a step that differs was changed: both raise an alarm.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from agentworld.errors import StoreError
from agentworld.records.base import Digest, Record
from agentworld.records.episode import Episode, text_digest
from agentworld.records.run import AgentRun
from agentworld.records.trajectory_log import TornLine, TrajectoryLine, TrajectoryStep

_MOST_EXAMPLES = 20


class JoinReport(Record):
    """The answer to: do the simulator's transitions and the agent's trajectory agree?"""

    run: str
    num_matched: int
    """Steps that are equal in both."""
    num_only_in_ledger: int
    num_only_in_trajectory: int
    num_other_simulator: int
    """Of the steps in both: the agent names another simulator."""
    num_other_action: int
    num_other_observation: int
    num_other_reward: int
    num_other_confidence: int
    """Of the steps in both: they differ in low confidence."""
    num_repeated: int
    """Lines of the trajectory beyond the first of a step."""
    num_torn: int
    """Files of the trajectory whose last line is incomplete because the trainer was killed."""
    examples: tuple[str, ...]
    """The first steps that differ."""

    @property
    def is_alarm(self) -> bool:
        """Any difference other than a loss."""
        return bool(
            self.num_only_in_trajectory
            or self.num_other_simulator
            or self.num_other_action
            or self.num_other_observation
            or self.num_other_reward
            or self.num_other_confidence
        )


class _StepRecord(NamedTuple):
    """One log's record of a step."""

    episode: str
    step: int
    by_agent: bool
    simulator: Digest
    action: Digest
    observation: Digest
    reward: float | None
    confidence: bool
    """True if the confidence is low."""


_COMPARED = ("simulator", "action", "observation", "reward", "confidence")


def join_run(
    run: AgentRun, episodes: Iterable[Episode], trajectory: Iterable[TrajectoryLine | TornLine]
) -> JoinReport:
    """Compares a run's episodes with the trajectory lines of this run, both in any order.

    Memory use is constant.
    """
    count: Counter[str] = Counter()
    examples: list[str] = []
    records = chain(_by_ledger(episodes), _by_agent(run, trajectory, count))
    for (episode, step), same in groupby(_sorted_on_disk(records), key=itemgetter(0, 1)):
        differences = _compare(list(same))
        count.update(differences)
        if "num_matched" not in differences and len(examples) < _MOST_EXAMPLES:
            differences_text = ", ".join(
                sorted(name.removeprefix("num_").replace("_", " ") for name in differences)
            )
            examples.append(f"step {step} of episode {episode}: {differences_text}")
    counts = {name: count[name] for name in JoinReport.model_fields if name.startswith("num_")}
    return JoinReport.model_validate({"run": run.id, **counts, "examples": examples})


def _by_ledger(episodes: Iterable[Episode]) -> Iterator[_StepRecord]:
    for episode in episodes:
        for step in episode.steps[episode.num_copied :]:
            digests = episode.simulator, step.action_digest, step.observation_digest
            outcome = step.reward, step.confidence.low
            yield _StepRecord(episode.id, step.number, False, *digests, *outcome)


def _by_agent(
    run: AgentRun, trajectory: Iterable[TrajectoryLine | TornLine], count: Counter[str]
) -> Iterator[_StepRecord]:
    for line in trajectory:
        if isinstance(line, TornLine):
            count["num_torn"] += 1
        elif isinstance(line, TrajectoryStep) and line.run == run.id:
            digests = line.simulator, text_digest(line.action), line.observation_digest
            outcome = line.reward, line.low_confidence
            yield _StepRecord(line.episode, line.step, True, *digests, *outcome)


def _compare(records: list[_StepRecord]) -> Counter[str]:
    """The counts of a step from its records."""
    agent = [record for record in records if record.by_agent]
    ledger = [record for record in records if not record.by_agent]
    if not agent:
        return Counter(num_only_in_ledger=1)
    repeats = Counter(num_repeated=len(agent) - 1) if len(agent) > 1 else Counter()
    if not ledger:
        return repeats + Counter(num_only_in_trajectory=1)
    differ = {
        f"num_other_{name}"
        for name in _COMPARED
        if any(getattr(record, name) != getattr(ledger[0], name) for record in agent)
    }
    return repeats + Counter(differ or {"num_matched"})


def _sorted_on_disk(records: Iterable[_StepRecord]) -> Iterator[_StepRecord]:
    """Sorts by episode and step."""
    try:
        with closing(
            sqlite3.connect("")
        ) as database:  # a temporary file that is deleted with the connection
            database.execute(f"CREATE TABLE told ({', '.join(_StepRecord._fields)})")
            places = ", ".join("?" * len(_StepRecord._fields))
            database.executemany(f"INSERT INTO told VALUES ({places})", records)
            rows = database.execute("SELECT * FROM told ORDER BY episode, step, by_agent")
            yield from map(_StepRecord._make, rows)
    except sqlite3.Error as error:
        raise StoreError(
            f"the steps cannot be sorted on disk: {error}; free space for temporary files"
        ) from error
