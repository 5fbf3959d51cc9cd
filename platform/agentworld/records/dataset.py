"""The manifest of a data set: disjoint pools of samples, and their origin."""

from collections import Counter
from typing import Self

from agentworld.records.base import Digest, JsonObject, Record, Sparse
from agentworld.records.collected import Collected
from agentworld.records.sample import Pool

UNSTATED = "unstated"
"""The licence of a trajectory without one."""


class PoolFile(Record):
    """One Parquet file of a data set."""

    file: str
    content: Digest
    """The digest of the samples in their order, independent of Parquet's version and
    compression.
    """
    num_samples: int
    num_turns: int
    num_targets: int
    tags: dict[str, int] = {}
    """The number of turns with each tag of their domain."""

    def share(self, tag: str) -> float:
        """The share of turns with a tag; 0 without turns."""
        return self.tags.get(tag, 0) / max(1, self.num_turns)


class Parent(Record):
    """Collected trajectories that a data set was prepared from."""

    collected: Digest
    """The digest of their manifest."""
    form: Sparse[str] = ""
    """The format of the imported recordings; empty if explorers collected them here."""
    options: Sparse[JsonObject] = {}
    """The importer's options."""
    num_quarantined: Sparse[int] = 0
    """Records that could not be imported."""
    quarantined: Sparse[dict[str, int]] = {}
    """The number of quarantined records by reason."""
    notes: Sparse[dict[str, int]] = {}
    """Records, and parts of them, that are not turns, by reason."""
    num_broken: Sparse[int] = 0
    """Episodes that explorers dropped because they broke their sandbox."""

    @classmethod
    def of(cls, collected: Collected) -> Self:
        """The parent of a manifest of collected trajectories."""
        names = cls.model_fields.keys() & Collected.model_fields.keys()
        return cls(collected=collected.digest, **{name: getattr(collected, name) for name in names})


class Lengths(Record):
    """Histograms: the number of values with no binary digit (0), one (1), two (2 to 3), and so
    on.
    """

    turns: tuple[int, ...] = ()
    """Turns of a trajectory."""
    action: tuple[int, ...] = ()
    """Characters of an action."""
    observation: tuple[int, ...] = ()
    """Characters of an observation."""


class DataSet(Record):
    """The output of `prepare`; its digest identifies the data in every later record."""

    parents: tuple[Parent, ...]
    recipe: JsonObject
    """The recipe's part, with every default; benchmarks are replaced by digests of their
    content.
    """
    num_read: int = 0
    """Trajectories of the parents."""
    filtered: dict[str, int]
    """The number of trajectories or turns that each filter removed or masked, by the filter's
    name.
    """
    pools: dict[Pool, PoolFile]
    domains: dict[str, int]
    """The number of trajectories of each domain, in all pools."""
    sources: dict[str, int] = {}
    """The number of trajectories of each policy or log."""
    licences: dict[str, int] = {}
    """The number of trajectories of each licence."""
    lengths: Lengths = Lengths()

    @property
    def origin(self) -> str:
        """The trajectories' origin, as text."""
        forms = sorted({parent.form for parent in self.parents if parent.form})
        imported = [f"imported from {', '.join(forms)}"] if forms else []
        is_live = any(not parent.form for parent in self.parents)
        return " and ".join([*(["recorded live"] if is_live else []), *imported])

    @property
    def num_trajectories(self) -> int:
        """The number of trajectories in the pools."""
        return sum(self.domains.values())

    @property
    def tags(self) -> dict[str, int]:
        """The number of turns with each tag, in all pools."""
        tags = Counter[str]()
        for file in self.pools.values():
            tags.update(file.tags)
        return dict(sorted(tags.items()))

    @property
    def quarantined(self) -> dict[str, int]:
        """The number of quarantined records of all parents, by reason."""
        reasons = Counter[str]()
        for parent in self.parents:
            reasons.update(parent.quarantined)
        return dict(sorted(reasons.items()))
