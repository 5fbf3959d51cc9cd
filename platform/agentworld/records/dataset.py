"""The manifest of a data set: disjoint pools of samples, and the filters that made them."""

from agentworld.records.base import Digest, Record
from agentworld.records.sample import Pool


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


class DataSet(Record):
    """What `prepare` made; its digest names the data in every later record."""

    domains: dict[str, int]
    """How many trajectories there are of each domain, in all pools."""
    trajectories: Digest
    """Of the trajectories that it was made from."""
    recipe: Digest
    pools: dict[Pool, PoolFile]
    filtered: dict[str, int]
    """How many trajectories or turns each filter removed or masked, by the filter's name."""
