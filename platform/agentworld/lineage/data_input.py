"""The data sets that the trainings of a version read, as a registry shows them.

A pure function of the record, so that the audit can compare them.
"""

import json
from collections.abc import Sequence

from agentworld.records.base import Digest, Record, digest_bytes
from agentworld.records.checkpoint import Checkpoint, Stage

_DIGEST_CHARACTERS = 36
"""MLflow's limit; the name has the whole digest."""


class DataInput(Record):
    """A data set, and the stages that read it."""

    name: str
    shortened: str
    """The digest, cut to the registry's limit."""
    source_type: str
    source: str
    readers: str
    """The stages, separated by blanks."""
    extra: str = ""
    """Anything that our versions never have: a schema, a profile that is not a manifest, other
    tags.
    """

    def __str__(self) -> str:
        source = f"digest {self.shortened}, source {self.source_type} {self.source}"
        return f"{self.name} ({source}, read by {self.readers}) {self.extra}".rstrip()


def data_inputs(stages: Sequence[Checkpoint]) -> tuple[DataInput, ...]:
    """Every data set once, with the stages that read it."""
    readers: dict[Digest, list[Stage]] = {}
    for checkpoint in stages:
        if checkpoint.data:
            readers.setdefault(checkpoint.data, []).append(checkpoint.stage)
    return tuple(_data_input(data, " ".join(stages)) for data, stages in readers.items())


def prepared_input(data: Digest) -> DataInput:
    """A data set as the input of the run that represents it."""
    return _data_input(data, "prepared")


def is_manifest(profile: str, data: str) -> bool:
    """Whether a registry's profile of a data set is the manifest with its digest."""
    return digest_bytes(profile.encode(errors="surrogatepass")) == data


def _data_input(data: Digest, readers: str) -> DataInput:
    return DataInput(
        name=data,
        shortened=data.removeprefix("sha256:")[:_DIGEST_CHARACTERS],
        source_type="agentworld",
        source=json.dumps({"digest": data}),
        readers=readers,
    )
