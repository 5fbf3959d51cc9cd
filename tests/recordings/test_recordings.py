"""Real recordings: `make test-recordings RECORDINGS=FOLDER`; its SOURCES.md describes them.

The expected figures are digests and numbers: no part of a recording is in this project. For each
source ten turns were looked up by eye in the raw records, without an importer.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentworld.data.imported import open_recordings
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import Record, digest_bytes
from agentworld.records.trajectory import Trajectory

_EXPECTED = sorted(Path(__file__).with_name("expected").glob("*.json"))


class ExpectedTurn(Record):
    """One turn, by the digests of its texts."""

    episode: int
    """Its number among all records of the source."""
    turn: int
    action: str
    observation: str


class Expected(Record):
    """The expected result of a source's import."""

    source: str
    """A file or a folder of the recordings."""
    form: str
    options: dict[str, Any] = {}
    calls: str
    """The definition of a call here."""
    num_episodes: int
    num_turns: int
    num_problems: int = 0
    notes: dict[str, int]
    num_tasks: int | None = None
    turns: tuple[ExpectedTurn, ...]


@pytest.fixture(params=_EXPECTED, ids=lambda path: path.stem)
def expected(request) -> Expected:
    return Expected.read(request.param)


@pytest.fixture
def import_result(expected: Expected):
    """The episodes of a source, the problems and the notes."""
    folder = Path(os.environ["RECORDINGS"])
    source = str(folder / expected.source)
    recipe = CollectRecipe(trajectories=source, format=expected.form, options=expected.options)
    recordings = open_recordings(recipe)
    episodes, problems, notes = list[Trajectory](), list[str](), Counter[str]()
    for file in recordings.files:
        for item in recordings.read(file):
            notes.update(item.notes)
            if item.trajectory:
                episodes.append(item.trajectory)
            else:
                problems.append(f"{file.name} {item.place}: {item.problem}")
    return episodes, problems, notes


def test_every_count_equals_the_expected_count_of_its_source(expected, import_result):
    episodes, problems, notes = import_result
    assert len(episodes) == expected.num_episodes
    assert sum(len(episode.turns) for episode in episodes) == expected.num_turns
    assert len(problems) == expected.num_problems
    assert {name: number for name, number in notes.items() if number} == expected.notes
    if expected.num_tasks is not None:
        assert len({episode.task_id for episode in episodes}) == expected.num_tasks


def test_ten_turns_equal_the_turns_looked_up_by_hand(expected, import_result):
    episodes, _, _ = import_result
    assert len(expected.turns) == 10 or sum(len(episode.turns) for episode in episodes) < 10
    for number, expected_turn in enumerate(expected.turns):
        turn = episodes[expected_turn.episode].turns[expected_turn.turn]
        digests = [digest_bytes(text.encode()) for text in (turn.action, turn.observation)]
        assert digests == [expected_turn.action, expected_turn.observation], (
            f"turn {number} of {expected.source}"
        )
