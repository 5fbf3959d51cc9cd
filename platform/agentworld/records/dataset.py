"""The manifest of a data set: disjoint pools of samples, what they were made from, and how."""

from collections import Counter
from typing import Self

from agentworld.records.base import Digest, JsonObject, Record, Sparse
from agentworld.records.collected import Collected
from agentworld.records.sample import Pool

UNSTATED = "unstated"
"""The licence of a trajectory that names none."""


class PoolFile(Record):
    """One Parquet file of a data set."""

    file: str
    content: Digest
    """Of the samples in their order, whatever Parquet's version and compression."""
    num_samples: int
    num_turns: int
    num_targets: int
    tags: dict[str, int] = {}
    """How many turns have each tag of their domain."""

    def share(self, tag: str) -> float:
        """Share of the turns that have a tag; 0 without turns."""
        return self.tags.get(tag, 0) / max(1, self.num_turns)


class Parent(Record):
    """Collected trajectories that a data set was made from."""

    collected: Digest
    """Of their manifest."""
    form: Sparse[str] = ""
    """Of the recordings that were imported; empty where explorers acted here."""
    options: Sparse[JsonObject] = {}
    """What the importer of that form was told."""
    num_quarantined: Sparse[int] = 0
    """Records that could not be imported."""
    quarantined: Sparse[dict[str, int]] = {}
    """How many there are of each reason."""
    notes: Sparse[dict[str, int]] = {}
    """How many records, and parts of them, became no turn, by reason."""
    num_broken: Sparse[int] = 0
    """Episodes that explorers dropped because they broke their sandbox."""

    @classmethod
    def of(cls, collected: Collected) -> Self:
        """What a manifest of collected trajectories says of them."""
        names = cls.model_fields.keys() & Collected.model_fields.keys()
        return cls(collected=collected.digest, **{name: getattr(collected, name) for name in names})


class Lengths(Record):
    """Histograms: how many values have no binary digit (0), one (1), two (2 to 3), and so on."""

    turns: tuple[int, ...] = ()
    """Of a trajectory."""
    action: tuple[int, ...] = ()
    """Characters of an action."""
    observation: tuple[int, ...] = ()
    """Characters of an observation."""


class DataSet(Record):
    """What `prepare` made; its digest names the data in every later record."""

    parents: tuple[Parent, ...]
    recipe: JsonObject
    """How it was prepared, with every default; benchmarks by the digests of their content."""
    num_read: int = 0
    """Trajectories of the parents."""
    filtered: dict[str, int]
    """How many trajectories or turns each filter removed or masked, by the filter's name."""
    pools: dict[Pool, PoolFile]
    domains: dict[str, int]
    """How many trajectories there are of each domain, in all pools."""
    sources: dict[str, int] = {}
    """The same of each policy or log that made them."""
    licences: dict[str, int] = {}
    """The same of each licence."""
    lengths: Lengths = Lengths()

    @property
    def origin(self) -> str:
        """Where its trajectories come from, in words."""
        forms = sorted({parent.form for parent in self.parents if parent.form})
        imported = [f"imported from {', '.join(forms)}"] if forms else []
        is_live = any(not parent.form for parent in self.parents)
        return " and ".join([*(["recorded live"] if is_live else []), *imported])

    @property
    def num_trajectories(self) -> int:
        """How many are in the pools."""
        return sum(self.domains.values())

    @property
    def tags(self) -> dict[str, int]:
        """How many turns of all pools have each tag."""
        tags = Counter[str]()
        for file in self.pools.values():
            tags.update(file.tags)
        return dict(sorted(tags.items()))

    @property
    def quarantined(self) -> dict[str, int]:
        """How many records of all parents could not be imported, by reason."""
        reasons = Counter[str]()
        for parent in self.parents:
            reasons.update(parent.quarantined)
        return dict(sorted(reasons.items()))
