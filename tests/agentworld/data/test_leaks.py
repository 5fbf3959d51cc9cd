"""Overlap of training data with held-out data and benchmarks, removed by `prepare`."""

import json
import random

import pytest

from agentworld.data.prepare import prepare
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.batches import BYTES_PER_BATCH
from agentworld.storage.pools import read_pool
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import write_trajectories
from make import records

pytestmark = pytest.mark.compute

HELD_OUT, BENCHMARK = "leak of held-out data", "leak of a benchmark"


def words(rng, count):
    return " ".join(f"w{rng.randrange(10**9)}" for _ in range(count))


def log(seed, observations, **fields):
    turns = [(f"look {seed} {number}", each) for number, each in enumerate(observations)]
    return records.trajectory(*turns, domain="text", seed=seed, **fields)


def logs(num_training, num_held_out, num_turns=4):
    rng = random.Random(0)
    return [
        log(n, [words(rng, 40) for _ in range(num_turns)], held_out=n < num_held_out)
        for n in range(num_training + num_held_out)
    ]


def planted(observations, seed):
    return log(seed, observations, task_id=f"leak {seed}")


def prepared(
    folder, trajectories, *, tick=ignore_progress, bytes_per_batch=BYTES_PER_BATCH, **recipe
):
    write_trajectories(folder / "logs" / "a.jsonl", trajectories)
    return prepare(
        PrepareRecipe(**recipe),
        folder / "logs",
        folder / "data",
        tick,
        benchmarks=[digest_of(each) for each in recipe.get("benchmarks", ())],
        bytes_per_batch=bytes_per_batch,
    )


def training(folder, dataset):
    pools = ("cpt", "sft", "rl")
    return {each.trajectory for pool in pools for each in read_pool(folder / "data", dataset, pool)}


def observations(trajectory):
    return [turn.observation for turn in trajectory.turns]


def half_of(trajectory, rng, seed):
    """A trajectory with every second observation from another one."""
    mixed = [each if n % 2 else words(rng, 40) for n, each in enumerate(observations(trajectory))]
    return planted(mixed, seed)


def test_only_trajectories_with_half_of_a_held_out_trajectory_are_removed(tmp_path):
    clean, rng = logs(200, 40), random.Random(1)
    leaks = [half_of(each, rng, 1_000 + n) for n, each in enumerate(clean[:40])]
    dataset = prepared(tmp_path, [*clean, *leaks])
    assert dataset.filtered == {HELD_OUT: 40}
    assert training(tmp_path, dataset) == {each.digest for each in clean[40:]}


def test_a_long_trajectory_that_contains_a_short_held_out_trajectory_is_a_leak(tmp_path):
    rng = random.Random(2)
    clean = [*logs(100, 20), log(900, [words(rng, 20), "ok"], held_out=True)]
    long = planted([words(rng, 600), observations(clean[-1])[0]], 901)
    assert prepared(tmp_path, [*clean, long]).filtered == {HELD_OUT: 1}


def test_boilerplate_of_a_harness_is_no_leak(tmp_path):
    rng = random.Random(3)
    harness = words(rng, 60)
    noisy = [
        log(n, [f"{words(rng, 8)} {harness}" for _ in range(3)], held_out=n < 10)
        for n in range(200)
    ]
    assert prepared(tmp_path, noisy, near_duplicates=None).filtered == {}


@pytest.mark.parametrize(
    "bytes_per_batch", [pytest.param(2_000, marks=pytest.mark.compute), BYTES_PER_BATCH]
)
def test_boilerplate_and_leaks_are_distinguished_across_all_batches(tmp_path, bytes_per_batch):
    rng = random.Random(5)
    harness = words(rng, 60)
    noisy = [
        log(n, [f"{words(rng, 30)} {harness}" for _ in range(2)], held_out=n < 8) for n in range(80)
    ]
    leaks = [half_of(each, rng, 500 + n) for n, each in enumerate(noisy[:8])]
    dataset = prepared(
        tmp_path,
        [*noisy, *leaks],
        near_duplicates=None,
        num_workers=1,
        bytes_per_batch=bytes_per_batch,
    )
    assert dataset.filtered == {HELD_OUT: 8}
    assert training(tmp_path, dataset) == {each.digest for each in noisy[8:]}


def test_text_shared_by_trials_of_one_held_out_task_is_no_boilerplate(tmp_path):
    clean, rng = logs(200, 0), random.Random(4)
    shared = [words(rng, 40) for _ in range(2)]
    trials = [
        log(500 + n, [*shared, words(rng, 40)], held_out=True, task_id="one") for n in range(30)
    ]
    leak = log(800, [shared[0], words(rng, 20)])
    dataset = prepared(tmp_path, [*clean, *trials, leak], near_duplicates=None)
    assert dataset.filtered == {HELD_OUT: 1}


@pytest.mark.parametrize("form", ["rows", "trajectories", "AgentWorldBench", "messages"])
def test_a_trajectory_of_a_benchmark_in_any_format_is_removed(tmp_path, form):
    clean = logs(100, 10)
    leaked, path = clean[50], tmp_path / "benchmark.jsonl"
    rows = {
        "rows": [{"question": "what?", "answers": [observations(leaked)[1]]}],
        "AgentWorldBench": [evaluation_row(observations(leaked)[1])],
        "messages": [{"messages": list(messages(leaked))}],
    }
    if form == "trajectories":
        write_trajectories(path, [leaked])
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[form]))
    dataset = prepared(tmp_path, clean, benchmarks=[str(path)])
    assert dataset.filtered == {BENCHMARK: 1}
    assert leaked.digest not in training(tmp_path, dataset)


def messages(trajectory):
    for turn in trajectory.turns:
        function = {"name": "look", "arguments": json.dumps({"at": turn.action})}
        call = {"id": turn.action, "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": turn.action, "content": turn.observation}


def evaluation_row(observation):
    return {
        "task": "terminal", "id": 1, "prompt": ["a", "look"], "response": ["b", observation],
        "current_prompt": "look", "system_str": "You are a terminal.",
        "turn_idx": 2, "total_turns": 2,
    }  # fmt: skip


def test_rows_of_agentworldbench_are_refused_for_training_by_name(tmp_path):
    write_trajectories(tmp_path / "logs" / "a.jsonl", logs(100, 10))
    (tmp_path / "logs" / "b.jsonl").write_text(json.dumps(evaluation_row("x")) + "\n")
    with pytest.raises(InputError, match=r"b\.jsonl line 1 is a row of AgentWorldBench"):
        prepare(PrepareRecipe(), tmp_path / "logs", tmp_path / "data", ignore_progress)


def test_recordings_and_text_rows_of_one_benchmark_are_both_compared(tmp_path):
    clean, path = logs(100, 10), tmp_path / "benchmark.jsonl"
    rows = [{"messages": list(messages(clean[40]))}, {"text": observations(clean[50])[1]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = prepared(tmp_path, clean, benchmarks=[str(path)])
    assert not {clean[40].digest, clean[50].digest} & training(tmp_path, dataset)


def test_a_benchmark_that_cannot_be_read_whole_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"text": "one"}\n{"text": \n')
    with pytest.raises(InputError, match="cannot be read whole") as refused:
        prepared(tmp_path, logs(100, 10), benchmarks=[str(path)])
    assert f"the benchmark {path} cannot be" in str(refused.value)
    assert "whole, at benchmark.jsonl line 2: it is not JSON" in str(refused.value)


def test_a_benchmark_without_a_text_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"number": 1}\n')
    with pytest.raises(InputError, match=r"benchmark\.jsonl has no text; name JSON lines"):
        prepared(tmp_path, logs(100, 10), benchmarks=[str(path)])


@pytest.mark.parametrize("end", ["", "and one more"], ids=["a copy", "nearly a copy"])
def test_of_two_similar_trajectories_the_held_out_trajectory_is_kept(tmp_path, end):
    clean = logs(100, 10)
    turns = observations(clean[50])
    held_out = log(50, [*turns[:-1], f"{turns[-1]} {end}".strip()], held_out=True)
    dataset = prepared(tmp_path, [*clean, held_out])
    assert clean[50].digest not in training(tmp_path, dataset)
    assert dataset.pools["held_out"].num_samples == 11
    assert dataset.filtered.keys() <= {"duplicate trajectory", "near-duplicate trajectory"}


def test_null_disables_the_search_for_leaks(tmp_path):
    clean = logs(100, 10)
    leak = planted(observations(clean[0])[:3], 900)
    dataset = prepared(tmp_path, [*clean, leak], leaks=None, near_duplicates=None)
    assert dataset.filtered == {}


def test_a_benchmark_changed_before_reading_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"text": "one"}\n')

    def tick(_done, _total):
        path.write_text('{"text": "two"}\n')

    with pytest.raises(InputError, match=r"benchmark\.jsonl changed while it was read; stop"):
        prepared(tmp_path, logs(100, 10), tick=tick, benchmarks=[str(path)])
    assert list((tmp_path / "data").iterdir()) == []
