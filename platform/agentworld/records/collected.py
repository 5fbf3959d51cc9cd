"""The manifest of collected trajectories: the files of a folder, and their contents."""

from agentworld.records.base import Digest, JsonObject, Record, Sparse


class Collected(Record):
    """The output of `collect`, or a folder of logs; its digest identifies the trajectories."""

    chunks: dict[str, Digest]
    """Files of JSON lines, by name."""
    domains: tuple[str, ...] = ()
    """The trajectories' domains; empty if the chunks are logs that were not parsed."""
    num_trajectories: int = 0
    """The number of trajectories for training; 0 if the chunks are logs that were not parsed."""
    num_transitions: int = 0
    num_held_out_trajectories: int = 0
    num_held_out_transitions: int = 0
    form: Sparse[str] = ""
    """The format of the imported recordings, such as `messages`."""
    options: Sparse[JsonObject] = {}
    """The importer's options."""
    num_quarantined: Sparse[int] = 0
    """Records that are not valid episodes; `quarantine.ndjson` has their places and problems."""
    quarantined: Sparse[dict[str, int]] = {}
    """The number of quarantined records by reason."""
    notes: Sparse[dict[str, int]] = {}
    """Records, and parts of them, that are not turns, by reason."""
    num_broken: int = 0
    """Episodes that were dropped because they broke their sandbox."""
