"""The same as `data_ours`, with `datasets.map(num_proc=2)`: each step is a map over the previous
one.

Rows and columns follow the library's guide, and each step calls our own function for a row: the
comparison is of running the functions and storing their results.
"""

import hashlib
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from agentworld.data.contents import content_key
from agentworld.data.filters import shorten
from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.importers import importer_of
from agentworld.data.leaks import Hits, RareGrams, find_leaks, index_grams, most_tasks
from agentworld.data.n_grams import hash_words, n_grams, text_of
from agentworld.data.near_duplicates import near_duplicates, sign
from agentworld.data.redaction import redact
from agentworld.data.samples import make_sample, pool_of
from agentworld.data.survey import WORDS_PER_GRAM
from agentworld.recipes.data import CollectRecipe, PrepareRecipe
from agentworld.records.sample import POOLS
from agentworld.records.trajectory import Trajectory
from agentworld.storage.pools import canonical
from benchmarks.data_ours import RECIPES

_PROCESSES = 2
Row = dict[str, Any]


class _Line:
    """A row in memory, as an importer reads a file."""

    suffix = ".jsonl"

    def __init__(self, row: Row) -> None:
        self._data = json.dumps(dict(row)).encode()

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        yield io.BufferedReader(io.BytesIO(self._data))


def main() -> None:
    """Prints the seconds, and the digests of the pools."""
    logs, folder, recipe = sys.argv[1], Path(sys.argv[2]), RECIPES[sys.argv[3]]
    datasets.disable_progress_bars()
    start = time.perf_counter()
    pools = run(logs, folder, recipe)
    print(json.dumps({"seconds": round(time.perf_counter() - start, 2), "pools": pools}))


def run(logs: str, folder: Path, recipe: PrepareRecipe) -> dict[str, str]:
    """The digest of each pool."""
    rows = datasets.load_dataset("json", data_files=logs, split="train", cache_dir=folder / "cache")
    rows = map_rows(rows, import_row)
    rows = map_rows(rows, partial(filter_row, recipe))
    rows = rows.filter(lambda turns: len(turns) > 0, input_columns="turns", num_proc=_PROCESSES)
    rows = rows.select(survivors(rows, recipe))
    if recipe.leaks is not None:
        rows = without_leaks(rows, recipe.leaks)
    rows = map_rows(rows, partial(sample_row, recipe))
    return {pool: write(rows, pool, folder) for pool in POOLS}


def map_rows(rows, function):
    """A step whose rows replace those before."""
    return rows.map(function, num_proc=_PROCESSES, remove_columns=rows.column_names)


def import_row(row: Row) -> Row:
    """Converts a chat to a trajectory."""
    importer, recipe = importer_of("messages"), CollectRecipe()
    (item,) = importer.read(_Line(row), importer.options(), "text")
    key = item.trajectory.task_id or item.trajectory.digest
    held_out = hash_uniform(recipe.seed, "held out", key) < recipe.held_out_share
    return item.trajectory.model_copy(update={"held_out": held_out}).model_dump(mode="json")


def trajectory_of(row: Row) -> Trajectory:
    """The trajectory in a row, which may have other columns."""
    return Trajectory.model_validate({n: row[n] for n in Trajectory.model_fields if n in row})


def filter_row(recipe: PrepareRecipe, row: Row) -> Row:
    """Removes empty turns; adds columns for copies, near-duplicates and leaks."""
    original = trajectory_of(row)
    shortened = shorten(original, recipe.min_turns, Counter())
    trajectory = shortened or original.model_copy(update={"turns": ()})
    columns = {
        **trajectory.model_dump(mode="json"),
        "digest": original.digest,
        "content": np.uint64(content_key(trajectory)),
    }
    if recipe.leaks is not None:
        words = hash_words([text_of(trajectory.turns)])
        columns["signature"] = sign(words)[0]
        columns["grams"] = n_grams(words[0], WORDS_PER_GRAM)
    return columns


def survivors(rows, recipe: PrepareRecipe) -> list[int]:
    """Without copies and near-duplicates, in their order."""
    rows = rows.with_format("numpy")
    order = np.argsort(~rows["held_out"][:], kind="stable")
    _, first_rows = np.unique(rows["content"][:][order], return_index=True)
    order = order[np.sort(first_rows)]
    if recipe.near_duplicates is not None:
        signatures = np.stack(rows["signature"][:]).astype(np.uint32)[order]
        order = order[~near_duplicates(signatures, recipe.near_duplicates)]
    return np.sort(order).tolist()


def without_leaks(rows, share: float):
    """Without rows that share 13-grams with held-out rows."""
    held_out = np.array(rows["held_out"][:])
    numbers = np.flatnonzero(held_out)
    gram_index = index_grams([np.array(row, np.uint64) for row in rows[numbers]["grams"]])
    hits = rows.map(
        partial(hits_of, gram_index.grams),
        batched=True, with_indices=True, num_proc=_PROCESSES, remove_columns=rows.column_names,
    ).with_format("numpy")  # fmt: skip
    sizes = rows.map(
        lambda batch: {"size": [len(item) for item in batch["grams"]]},
        batched=True, num_proc=_PROCESSES, remove_columns=rows.column_names,
    )["size"][:]  # fmt: skip
    is_training = ~held_out[hits["row"][:]]
    all_hits = Hits(hits["row"][:][is_training], hits["gram"][:][is_training], np.array(sizes))
    tasks = np.unique(rows["task_id"][:], return_inverse=True)[1]
    num_tasks = len(set(tasks))
    rare = RareGrams(gram_index, most_tasks(num_tasks), num_tasks)
    rare.add(all_hits.pairs(tasks, num_tasks))
    is_leak = find_leaks(all_hits, gram_index, rare.mask(), share)
    return rows.select(np.flatnonzero(held_out | ~is_leak).tolist())


def hits_of(gram_index, batch: Row, indices: list[int]) -> Row:
    """The 13-grams of rows to check."""
    grams = np.concatenate([np.array(item, np.uint64) for item in batch["grams"]])
    numbers = np.repeat(indices, [len(item) for item in batch["grams"]])
    places = np.minimum(np.searchsorted(gram_index, grams), len(gram_index) - 1)
    is_hit = gram_index[places] == grams
    return {"row": numbers[is_hit], "gram": places[is_hit]}


def sample_row(recipe: PrepareRecipe, row: Row) -> Row:
    """A sample with its masks, and the text for the pool's digest."""
    trajectory, digest = trajectory_of(row), row["digest"]
    pool = pool_of(recipe, trajectory, digest)
    if recipe.redact:
        trajectory = redact(trajectory).trajectory
    sample = make_sample(recipe, trajectory, digest, pool)
    columns = sample.model_dump(mode="json")
    return {"pool": pool if sample.targets else "", "canonical": canonical(columns), **columns}


def write(rows, pool: str, folder: Path) -> str:
    """Writes a pool; returns the digest of its samples."""
    rows = rows.filter(lambda row_pool: row_pool == pool, input_columns="pool", num_proc=_PROCESSES)
    content = hashlib.sha256()
    for batch in rows.select_columns(["canonical"]).iter(1_000):
        content.update(b"".join(batch["canonical"]))
    rows.remove_columns(["pool", "canonical"]).to_parquet(folder / f"{pool}.parquet")
    return "sha256:" + content.hexdigest()


if __name__ == "__main__":
    main()
