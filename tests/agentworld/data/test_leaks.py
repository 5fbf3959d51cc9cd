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
    turns = [
        (f"look {seed} {number}", observation) for number, observation in enumerate(observations)
    ]
    return records.trajectory(*turns, domain="text", seed=seed, **fields)


def logs(num_training, num_held_out, num_turns=4):
    rng = random.Random(0)
    return [
        log(n, [words(rng, 40) for _ in range(num_turns)], held_out=n < num_held_out)
        for n in range(num_training + num_held_out)
    ]


def leak_of(observations, seed):
    return log(seed, observations, task_id=f"leak {seed}")


def prepare_data(
    folder, trajectories, *, tick=ignore_progress, bytes_per_batch=BYTES_PER_BATCH, **recipe
):
    write_trajectories(folder / "logs" / "a.jsonl", trajectories)
    return prepare(
        PrepareRecipe(**recipe),
        folder / "logs",
        folder / "data",
        tick,
        benchmarks=[digest_of(path) for path in recipe.get("benchmarks", ())],
        bytes_per_batch=bytes_per_batch,
    )


def training_digests(folder, dataset):
    pools = ("cpt", "sft", "rl")
    return {
        sample.trajectory for pool in pools for sample in read_pool(folder / "data", dataset, pool)
    }


def observations(trajectory):
    return [turn.observation for turn in trajectory.turns]


def half_of(trajectory, rng, seed):
    """A trajectory with every second observation of another one."""
    texts = [text if n % 2 else words(rng, 40) for n, text in enumerate(observations(trajectory))]
    return leak_of(texts, seed)


def test_only_trajectories_with_half_of_a_held_out_trajectory_are_removed(tmp_path):
    episodes, rng = logs(200, 40), random.Random(1)
    leaks = [half_of(episode, rng, 1_000 + n) for n, episode in enumerate(episodes[:40])]
    dataset = prepare_data(tmp_path, [*episodes, *leaks])
    assert dataset.filtered == {HELD_OUT: 40}
    assert training_digests(tmp_path, dataset) == {episode.digest for episode in episodes[40:]}


def test_a_long_trajectory_that_contains_a_short_held_out_trajectory_is_a_leak(tmp_path):
    rng = random.Random(2)
    episodes = [*logs(100, 20), log(900, [words(rng, 20), "ok"], held_out=True)]
    leak = leak_of([words(rng, 600), observations(episodes[-1])[0]], 901)
    assert prepare_data(tmp_path, [*episodes, leak]).filtered == {HELD_OUT: 1}


def test_boilerplate_of_a_harness_is_no_leak(tmp_path):
    rng = random.Random(3)
    boilerplate = words(rng, 60)
    episodes = [
        log(n, [f"{words(rng, 8)} {boilerplate}" for _ in range(3)], held_out=n < 10)
        for n in range(200)
    ]
    assert prepare_data(tmp_path, episodes, near_duplicates=None).filtered == {}


@pytest.mark.parametrize(
    "bytes_per_batch", [pytest.param(2_000, marks=pytest.mark.compute), BYTES_PER_BATCH]
)
def test_boilerplate_and_leaks_are_distinguished_across_all_batches(tmp_path, bytes_per_batch):
    rng = random.Random(5)
    boilerplate = words(rng, 60)
    episodes = [
        log(n, [f"{words(rng, 30)} {boilerplate}" for _ in range(2)], held_out=n < 8)
        for n in range(80)
    ]
    leaks = [half_of(episode, rng, 500 + n) for n, episode in enumerate(episodes[:8])]
    dataset = prepare_data(
        tmp_path,
        [*episodes, *leaks],
        near_duplicates=None,
        num_workers=1,
        bytes_per_batch=bytes_per_batch,
    )
    assert dataset.filtered == {HELD_OUT: 8}
    assert training_digests(tmp_path, dataset) == {episode.digest for episode in episodes[8:]}


def test_text_shared_by_trials_of_one_held_out_task_is_no_boilerplate(tmp_path):
    episodes, rng = logs(200, 0), random.Random(4)
    texts = [words(rng, 40) for _ in range(2)]
    trials = [
        log(500 + n, [*texts, words(rng, 40)], held_out=True, task_id="one") for n in range(30)
    ]
    leak = log(800, [texts[0], words(rng, 20)])
    dataset = prepare_data(tmp_path, [*episodes, *trials, leak], near_duplicates=None)
    assert dataset.filtered == {HELD_OUT: 1}


@pytest.mark.parametrize("form", ["rows", "trajectories", "AgentWorldBench", "messages"])
def test_a_trajectory_of_a_benchmark_in_any_format_is_removed(tmp_path, form):
    episodes = logs(100, 10)
    leak, path = episodes[50], tmp_path / "benchmark.jsonl"
    rows = {
        "rows": [{"question": "what?", "answers": [observations(leak)[1]]}],
        "AgentWorldBench": [evaluation_row(observations(leak)[1])],
        "messages": [{"messages": list(messages(leak))}],
    }
    if form == "trajectories":
        write_trajectories(path, [leak])
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[form]))
    dataset = prepare_data(tmp_path, episodes, benchmarks=[str(path)])
    assert dataset.filtered == {BENCHMARK: 1}
    assert leak.digest not in training_digests(tmp_path, dataset)


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
    episodes, path = logs(100, 10), tmp_path / "benchmark.jsonl"
    rows = [{"messages": list(messages(episodes[40]))}, {"text": observations(episodes[50])[1]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = prepare_data(tmp_path, episodes, benchmarks=[str(path)])
    assert not {episodes[40].digest, episodes[50].digest} & training_digests(tmp_path, dataset)


def test_a_benchmark_that_cannot_be_read_whole_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"text": "one"}\n{"text": \n')
    with pytest.raises(InputError, match="cannot be read whole") as error:
        prepare_data(tmp_path, logs(100, 10), benchmarks=[str(path)])
    assert f"the benchmark {path} cannot be" in str(error.value)
    assert "whole, at benchmark.jsonl line 2: it is not JSON" in str(error.value)


def test_a_benchmark_without_a_text_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"number": 1}\n')
    with pytest.raises(InputError, match=r"benchmark\.jsonl has no text; name JSON lines"):
        prepare_data(tmp_path, logs(100, 10), benchmarks=[str(path)])


@pytest.mark.parametrize("end", ["", "and one more"], ids=["a copy", "nearly a copy"])
def test_of_two_similar_trajectories_the_held_out_trajectory_is_kept(tmp_path, end):
    episodes = logs(100, 10)
    texts = observations(episodes[50])
    near_copy = log(50, [*texts[:-1], f"{texts[-1]} {end}".strip()], held_out=True)
    dataset = prepare_data(tmp_path, [*episodes, near_copy])
    assert episodes[50].digest not in training_digests(tmp_path, dataset)
    assert dataset.pools["held_out"].num_samples == 11
    assert dataset.filtered.keys() <= {"duplicate trajectory", "near-duplicate trajectory"}


def test_null_disables_the_search_for_leaks(tmp_path):
    episodes = logs(100, 10)
    leak = leak_of(observations(episodes[0])[:3], 900)
    dataset = prepare_data(tmp_path, [*episodes, leak], leaks=None, near_duplicates=None)
    assert dataset.filtered == {}


def test_a_benchmark_changed_before_reading_is_refused(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text('{"text": "one"}\n')

    def tick(_done, _total):
        path.write_text('{"text": "two"}\n')

    with pytest.raises(InputError, match=r"benchmark\.jsonl changed while it was read; stop"):
        prepare_data(tmp_path, logs(100, 10), tick=tick, benchmarks=[str(path)])
    assert list((tmp_path / "data").iterdir()) == []
