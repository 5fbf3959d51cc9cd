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
    output_share: float
    """Share of turns that show more than a prompt line."""
    history_share: float
    """Share of turns that depend on earlier turns of their episode."""
    unseen_share: float
    """Share of turns that hold a word no training episode holds."""
    classes: dict[str, int] = {}
    """How many turns there are of each command class."""


class DataSet(Record):
    """What `prepare` made; its digest names the data in every later record."""

    domain: str
    trajectories: Digest
    """Of the trajectories that it was made from."""
    recipe: Digest
    pools: dict[Pool, PoolFile]
    filtered: dict[str, int]
    """How many trajectories or turns each filter removed or masked, by the filter's name."""
