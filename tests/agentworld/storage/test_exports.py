import re
import tracemalloc
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.episode import Episode, EpisodeOpening, Source, text_bytes
from agentworld.storage.exports import (
    TRAJECTORIES,
    TRAJECTORY_SCHEMA,
    TRANSITION_SCHEMA,
    TRANSITIONS,
    write_trajectories,
    write_transitions,
)
from make import records

DOCS = Path(__file__).parents[3] / "docs/exports.md"


@pytest.mark.waits
@given(st.lists(st.text(st.characters()), max_size=5))
def test_any_text_is_exported_as_its_bytes(tmp_path_factory, observations):
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    assert write_transitions(path, [records.episode(*observations)]) == len(observations)
    rows = pq.read_table(path).to_pylist()
    assert [row["observation"] for row in rows] == [text_bytes(text) for text in observations]
    assert [row["step"] for row in rows] == list(range(1, len(observations) + 1))


@pytest.mark.waits
def test_erased_texts_are_null_and_their_digests_stay(tmp_path):
    episode = records.episode("a")
    erased = episode._replace(steps=(episode.steps[0]._replace(action=None, observation=None),))
    write_transitions(tmp_path / "a.parquet", [erased])
    (row,) = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert (row["action"], row["observation"]) == (None, None)
    assert row["observation_digest"] == episode.steps[0].observation_digest


def test_steps_copied_by_a_fork_are_marked_as_copied(tmp_path):
    opening = EpisodeOpening(run="r", fork=Source(episode="other", step=1))
    episode = records.episode("a", "b", base=Episode.new("e", records.digest("s"), opening))
    write_transitions(tmp_path / "a.parquet", [episode])
    assert pq.read_table(tmp_path / "a.parquet")["copied"].to_pylist() == [True, False]


def test_exported_trajectories_contain_the_low_confidence_flag(tmp_path):
    step = records.acted(records.episode("a"), 1)
    write_trajectories(tmp_path / "a.parquet", [step, step._replace(low_confidence=True)])
    flags = pq.read_table(tmp_path / "a.parquet")["low_confidence"].to_pylist()
    assert flags == [False, True]


def test_an_export_without_steps_has_all_columns(tmp_path):
    assert write_trajectories(tmp_path / "a.parquet", []) == 0
    assert pq.read_schema(tmp_path / "a.parquet").equals(TRAJECTORY_SCHEMA)


def test_every_exported_column_has_a_description(tmp_path):
    write_transitions(tmp_path / "a.parquet", [records.episode("a")])
    for column in pq.read_schema(tmp_path / "a.parquet"):
        assert column.metadata[b"about"]


def test_a_failed_export_leaves_no_file(tmp_path):
    episodes = (records.episode(str(1 // divisor)) for divisor in (1, 0))
    with pytest.raises(ZeroDivisionError):
        write_transitions(tmp_path / "a.parquet", episodes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.waits
def test_memory_does_not_grow_with_the_texts(tmp_path):
    tracemalloc.start()
    write_transitions(tmp_path / "a.parquet", (records.episode("x" * (4 << 20)) for _ in range(32)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 8


@pytest.mark.parametrize(
    ("file", "schema"),
    [(TRANSITIONS, TRANSITION_SCHEMA), (TRAJECTORIES, TRAJECTORY_SCHEMA)],
)
def test_the_docs_describe_every_column_as_the_file_does(file, schema):
    _, _, section = DOCS.read_text().partition(f"## {file}\n")
    table = re.findall(r"^\| `(\w+)` \| ([\w ]+) \| (.+) \|$", section.partition("\n## ")[0], re.M)
    assert table == [
        (
            column.name,
            f"{column.type} or null" if column.nullable else str(column.type),
            column.metadata[b"about"].decode(),
        )
        for column in schema
    ]
