"""The same as `data_ours`, by `datasets.map(num_proc=2)`: each step is a map over the step before.

A step calls our function for one trajectory or for a batch, so that what is compared is what runs
the functions and stores what they return.
"""

import hashlib
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import datasets
import numpy as np

from agentworld.data.filters import TrajectoryFilter, digest_content
from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.importers import importer_of
from agentworld.data.leaks import Hits, find_leaks, index_judged, most_tasks
from agentworld.data.n_grams import hash_words, n_grams, text_of
from agentworld.data.near_duplicates import near_duplicates, sign
from agentworld.data.samples import make_sample, pool_of
from agentworld.data.survey import WORDS_PER_GRAM
from agentworld.recipes.data import CollectRecipe, PrepareRecipe
from agentworld.records.sample import POOLS
from agentworld.records.trajectory import Trajectory
from agentworld.storage.pools import canonical
from benchmarks.data_ours import RECIPES

_PROCESSES = 2
Columns = dict[str, list[object]]


class _Lines:
    """Rows in memory, as an importer reads a file."""

    suffix = ".jsonl"

    def __init__(self, lines: list[str]) -> None:
        self._data = "\n".join(lines).encode()

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        yield io.BufferedReader(io.BytesIO(self._data))


def main() -> None:
    """Prints the seconds, and the digests of the pools."""
    logs, folder, recipe = sys.argv[1], Path(sys.argv[2]), RECIPES[sys.argv[3]]
    datasets.disable_progress_bars()
    started = time.perf_counter()
    pools = run(logs, folder, recipe)
    print(json.dumps({"seconds": round(time.perf_counter() - started, 2), "pools": pools}))


def run(logs: str, folder: Path, recipe: PrepareRecipe) -> dict[str, str]:
    """The digest of each pool."""
    rows = datasets.load_dataset("text", data_files=logs, split="train", cache_dir=folder / "cache")
    rows = mapped(rows, import_rows)
    rows = mapped(rows, partial(filter_rows, recipe))
    rows = rows.select(survivors(rows, recipe))
    if recipe.leaks is not None:
        rows = without_leaks(rows, recipe.leaks)
    rows = mapped(rows, partial(sample_rows, recipe))
    return {pool: write(rows, pool, folder) for pool in POOLS}


def mapped(rows, function):
    """A step whose rows replace those before."""
    return rows.map(function, batched=True, num_proc=_PROCESSES, remove_columns=rows.column_names)


def import_rows(batch: Columns) -> Columns:
    """Chats become trajectories."""
    importer, recipe = importer_of("messages"), CollectRecipe()
    items = importer.read(_Lines(batch["text"]), importer.options(), "text")
    trajectories = []
    for trajectory in (item.trajectory for item in items if item.trajectory):
        key = trajectory.task_id or trajectory.digest
        held_out = hash_uniform(recipe.seed, "held out", key) < recipe.held_out_share
        trajectories.append(trajectory.model_copy(update={"held_out": held_out}))
    return {"trajectory": [each.model_dump_json() for each in trajectories]}


def filter_rows(recipe: PrepareRecipe, batch: Columns) -> Columns:
    """Without what is short; with what is needed to look for copies, near-duplicates and leaks."""
    trajectory_filter = TrajectoryFilter(recipe.min_turns)
    pairs = []
    for text in batch["trajectory"]:
        recorded = Trajectory.model_validate_json(text)
        if trajectory := trajectory_filter.shorten(recorded):
            pairs.append((recorded.digest, trajectory))
    trajectories = [trajectory for _, trajectory in pairs]
    columns = {
        "digest": [digest for digest, _ in pairs],
        "trajectory": [each.model_dump_json() for each in trajectories],
        "content": np.array([digest_content(each) for each in trajectories], np.uint64),
        "held_out": [each.held_out for each in trajectories],
        "task": [each.task_id for each in trajectories],
    }
    if recipe.leaks is not None:
        words = hash_words([text_of(each.turns) for each in trajectories])
        columns["signature"] = list(sign(words))
        columns["grams"] = [n_grams(each, WORDS_PER_GRAM) for each in words]
    return columns


def survivors(rows, recipe: PrepareRecipe) -> list[int]:
    """Neither copies nor near-duplicates, in their order."""
    rows = rows.with_format("numpy")
    order = np.argsort(~rows["held_out"][:], kind="stable")
    _, firsts = np.unique(rows["content"][:][order], return_index=True)
    order = order[np.sort(firsts)]
    if recipe.near_duplicates is not None:
        signatures = np.stack(rows["signature"][:]).astype(np.uint32)[order]
        order = order[~near_duplicates(signatures, recipe.near_duplicates)]
    return np.sort(order).tolist()


def without_leaks(rows, share: float):
    """Without what shares 13-grams with held-out rows."""
    held_out = np.array(rows["held_out"][:])
    numbers = np.flatnonzero(held_out)
    judged = index_judged([np.array(each, np.uint64) for each in rows[numbers]["grams"]])
    hits = rows.map(
        partial(hits_of, judged.grams),
        batched=True, with_indices=True, num_proc=_PROCESSES, remove_columns=rows.column_names,
    ).with_format("numpy")  # fmt: skip
    sizes = rows.map(
        lambda batch: {"size": [len(each) for each in batch["grams"]]},
        batched=True, num_proc=_PROCESSES, remove_columns=rows.column_names,
    )["size"][:]  # fmt: skip
    is_training = ~held_out[hits["row"][:]]
    all_hits = Hits(hits["row"][:][is_training], hits["gram"][:][is_training], np.array(sizes))
    tasks = np.unique(rows["task"][:], return_inverse=True)[1]
    is_leak = find_leaks(all_hits, tasks, judged, most_tasks(len(set(tasks))), share)
    return rows.select(np.flatnonzero(held_out | ~is_leak).tolist())


def hits_of(judged, batch: Columns, indices: list[int]) -> Columns:
    """The 13-grams of rows that are judged."""
    grams = np.concatenate([np.array(each, np.uint64) for each in batch["grams"]])
    numbers = np.repeat(indices, [len(each) for each in batch["grams"]])
    places = np.minimum(np.searchsorted(judged, grams), len(judged) - 1)
    is_hit = judged[places] == grams
    return {"row": numbers[is_hit], "gram": places[is_hit]}


def sample_rows(recipe: PrepareRecipe, batch: Columns) -> Columns:
    """Samples with their masks, and the text of which a pool's digest is."""
    rows = []
    for digest, text in zip(batch["digest"], batch["trajectory"], strict=True):
        trajectory = Trajectory.model_validate_json(text)
        pool = pool_of(recipe, trajectory, digest)
        sample = make_sample(recipe, trajectory, digest, pool)
        if sample.targets:
            row = sample.model_dump(mode="json")
            rows.append({"pool": pool, "canonical": canonical(row), **row})
    return {name: [row[name] for row in rows] for name in rows[0]}


def write(rows, pool: str, folder: Path) -> str:
    """Writes a pool, and gives the digest of its samples."""
    rows = rows.filter(lambda each: each == pool, input_columns="pool", num_proc=_PROCESSES)
    content = hashlib.sha256()
    for batch in rows.select_columns(["canonical"]).iter(1_000):
        content.update(b"".join(batch["canonical"]))
    rows.remove_columns(["pool", "canonical"]).to_parquet(folder / f"{pool}.parquet")
    return "sha256:" + content.hexdigest()


if __name__ == "__main__":
    main()
