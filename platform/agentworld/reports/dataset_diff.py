"""Compares two data sets: their recipes, their counts, and their trajectories."""

from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.records.base import Digest, Record
from agentworld.records.dataset import DataSet
from agentworld.records.leaves import json_leaves
from agentworld.storage.datasets import StoredDataSet

_COUNTS = ("domains", "sources", "licences", "tags", "filtered", "quarantined")


class Difference(Record):
    """One difference."""

    what: str
    """A path such as `recipe.mask.echo`, or `tags.output`."""
    first: JsonValue
    second: JsonValue
    """Null if the data set does not have it."""


class DataSetDifference(Record):
    """The differences of two data sets."""

    first: Digest
    second: Digest
    differences: tuple[Difference, ...]
    """Differences of parents first, of pools last."""
    num_only_first: int
    """Trajectories that are in no pool of the second one."""
    num_only_second: int
    num_both: int


def diff_datasets(first: StoredDataSet, second: StoredDataSet) -> DataSetDifference:
    """Compares manifests and the digests in the pools; raises InputError for a broken pool."""
    first_facts, second_facts = dict(_facts(first.dataset)), dict(_facts(second.dataset))
    own, others = first.trajectories(), second.trajectories()
    return DataSetDifference(
        first=first.digest,
        second=second.digest,
        differences=tuple(
            Difference(what=name, first=first_facts.get(name), second=second_facts.get(name))
            for name in {**first_facts, **second_facts}
            if first_facts.get(name) != second_facts.get(name)
        ),
        num_only_first=len(own - others),
        num_only_second=len(others - own),
        num_both=len(own & others),
    )


def _facts(dataset: DataSet) -> Iterator[tuple[str, JsonValue]]:
    yield "parents", [parent.collected for parent in dataset.parents]
    for number, parent in enumerate(dataset.parents):
        yield f"parents.{number}.form", parent.form or None
        yield from json_leaves(parent.options, f"parents.{number}.options")
    yield from json_leaves(dataset.recipe, "recipe")
    yield "trajectories.read", dataset.num_read
    yield "trajectories.in_pools", dataset.num_trajectories
    for name in _COUNTS:
        yield from json_leaves(getattr(dataset, name), name)
    for name, file in dataset.pools.items():
        for count in ("num_samples", "num_turns", "num_targets"):
            yield f"pools.{name}.{count}", getattr(file, count)
        yield f"pools.{name}.content", file.content
