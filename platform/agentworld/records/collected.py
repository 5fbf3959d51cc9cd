"""The manifest of collected trajectories: the files of a folder, and what is in them."""

from agentworld.records.base import Digest, JsonObject, Record, Sparse


class Collected(Record):
    """What `collect` made, or a folder of logs; its digest names the trajectories."""

    chunks: dict[str, Digest]
    """Files of JSON lines, by name."""
    domains: tuple[str, ...] = ()
    """Of the trajectories; empty where the chunks are logs that nobody read."""
    num_trajectories: int = 0
    """For training; 0 where the chunks are logs that nobody counted."""
    num_transitions: int = 0
    num_held_out_trajectories: int = 0
    num_held_out_transitions: int = 0
    form: Sparse[str] = ""
    """Of the recordings that were imported, such as `messages`."""
    options: Sparse[JsonObject] = {}
    """What the importer of that form was told."""
    num_quarantined: Sparse[int] = 0
    """Records of theirs that are no episode; `quarantine.ndjson` says where and why."""
    quarantined: Sparse[dict[str, int]] = {}
    """How many of them there are of each reason."""
    notes: Sparse[dict[str, int]] = {}
    """How many records, and parts of them, became no turn, by reason."""
    num_broken: int = 0
    """Episodes that were dropped because they broke their sandbox."""
