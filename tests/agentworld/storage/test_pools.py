import tracemalloc

import pyarrow.parquet as pq
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agentworld.errors import InputError
from agentworld.storage.pools import canonical, read_dataset, read_pool
from make import records
from make.pools import write_pool


def write_dataset(folder, samples, pool="cpt"):
    return records.dataset(**{pool: write_pool(folder / f"{pool}.parquet", samples)})


def test_samples_are_read_back_unchanged_and_in_order(tmp_path):
    samples = [records.sample(seed, num_turns=seed % 5 + 1) for seed in range(30)]
    assert list(read_pool(tmp_path, write_dataset(tmp_path, samples), "cpt")) == samples


def test_a_pool_is_counted_while_it_is_written(tmp_path):
    file = write_pool(tmp_path / "sft.parquet", [records.sample(seed) for seed in range(4)])
    assert (file.file, file.num_samples, file.num_turns, file.num_targets) == (
        "sft.parquet",
        4,
        12,
        12,
    )
    assert file.tags == {"cat": 4, "history": 4, "output": 4, "write": 8}
    assert [file.share(tag) for tag in ("output", "history", "unseen")] == [1 / 3, 1 / 3, 0]


def test_a_missing_state_differs_from_an_empty_state(tmp_path):
    sample = records.sample()
    states = (None, "", "rimo.txt: kolu")
    turns = tuple(
        turn.model_copy(update={"state": state})
        for turn, state in zip(sample.turns, states, strict=True)
    )
    changed_sample = sample.model_copy(update={"turns": turns})
    (loaded,) = read_pool(tmp_path, write_dataset(tmp_path, [changed_sample]), "cpt")
    assert tuple(turn.state for turn in loaded.turns) == states
    assert write_pool(tmp_path / "b.parquet", [sample]).content != (
        write_pool(tmp_path / "c.parquet", [changed_sample]).content
    )


def test_the_tag_share_of_a_pool_without_turns_is_zero(tmp_path):
    assert write_pool(tmp_path / "a.parquet", []).share("output") == 0


def test_the_digest_depends_on_the_samples_and_not_on_the_file(tmp_path, monkeypatch):
    samples = [records.sample(seed) for seed in range(5)]
    one_group = write_pool(tmp_path / "a.parquet", samples)
    monkeypatch.setattr("agentworld.storage.pools._ROWS_PER_GROUP", 2)
    several_groups = write_pool(tmp_path / "b.parquet", samples, samples_per_batch=2)
    assert (tmp_path / "a.parquet").read_bytes() != (tmp_path / "b.parquet").read_bytes()
    assert one_group.content == several_groups.content


def test_another_order_or_a_changed_sample_changes_the_digest(tmp_path):
    samples = [records.sample(0), records.sample(1)]
    changed_samples = [samples[0], samples[1].model_copy(update={"domain": "shelL"})]
    digests = {
        write_pool(tmp_path / "a.parquet", pool).content
        for pool in (samples, samples[::-1], changed_samples)
    }
    assert len(digests) == 3


def test_the_columns_are_nested_and_not_text(tmp_path):
    write_pool(tmp_path / "a.parquet", [records.sample()])
    schema = pq.ParquetFile(tmp_path / "a.parquet").schema
    paths = {schema.column(index).path for index in range(len(schema))}
    assert {"prompt.initial_state", "turns.list.element.tags.list.element"} <= paths


def test_a_changed_sample_is_detected_when_the_whole_pool_is_read(tmp_path):
    dataset = write_dataset(tmp_path, [records.sample(0), records.sample(1)])
    write_pool(tmp_path / "cpt.parquet", [records.sample(0), records.sample(2)])
    with pytest.raises(InputError, match="do not match"):
        list(read_pool(tmp_path, dataset, "cpt"))


@pytest.mark.parametrize("damage", ["remove", "garble", "empty", "cut", "columns"])
def test_a_broken_pool_file_is_reported_in_one_line(tmp_path, damage):
    dataset = write_dataset(tmp_path, [records.sample(seed) for seed in range(50)])
    path = tmp_path / "cpt.parquet"
    data = path.read_bytes()
    match damage:
        case "remove":
            path.unlink()
        case "garble":
            path.write_bytes(b"PAR1" + b"x" * 400 + b"PAR1")
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "columns":
            pq.write_table(pq.read_table(path).drop_columns("turns"), path)
    with pytest.raises(InputError, match=r"cpt\.parquet") as error:
        list(read_pool(tmp_path, dataset, "cpt"))
    assert "\n" not in str(error.value)


def test_garbled_pages_are_an_input_error(tmp_path):
    dataset = write_dataset(tmp_path, [records.sample(seed) for seed in range(50)])
    data = bytearray((tmp_path / "cpt.parquet").read_bytes())
    data[40:400] = b"\x00" * 360
    (tmp_path / "cpt.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"cpt\.parquet"):
        list(read_pool(tmp_path, dataset, "cpt"))


def test_a_missing_pool_is_reported(tmp_path):
    with pytest.raises(InputError, match="no pool 'rl'"):
        list(read_pool(tmp_path, records.dataset(), "rl"))


def test_a_failed_write_leaves_no_file(tmp_path):
    samples = (records.sample(1 // seed) for seed in (1, 0))
    with pytest.raises(ZeroDivisionError):
        write_pool(tmp_path / "a.parquet", samples)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_data_set_manifest_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"dataset\.json"):
        read_dataset(tmp_path)


@given(st.dictionaries(st.text("abc", min_size=1), st.text() | st.booleans()))
def test_the_fast_canonical_form_matches_rfc_8785(row):
    assert canonical(row) == rfc8785.dumps(row) + b"\n"


@pytest.mark.compute
def test_reading_a_pool_holds_only_a_part_of_a_group_in_memory(tmp_path):
    (turn, *_) = records.sample().turns
    turns = (turn.model_copy(update={"observation": "a" * 10_000}),)
    samples = [records.sample().model_copy(update={"turns": turns})] * 1_000
    dataset = write_dataset(tmp_path, samples)
    tracemalloc.start()
    try:
        next(read_pool(tmp_path, dataset, "cpt"))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 2_000_000


@pytest.mark.compute
def test_twenty_thousand_samples_are_written_and_read(tmp_path):
    samples = [records.sample(seed % 100, num_turns=13) for seed in range(20_000)]
    dataset = write_dataset(tmp_path, samples)
    assert sum(1 for _ in read_pool(tmp_path, dataset, "cpt")) == 20_000
