"""Data sets in a bill of materials: their digests and the contents of their manifests."""

from pathlib import Path

from agentworld.audit.export.cyclonedx.parts import Part, component, licences_of, short
from agentworld.records.base import Digest, digest_json
from agentworld.records.corpus import CorpusUse
from agentworld.records.dataset import UNSTATED, DataSet
from agentworld.storage.datasets import prepared_dataset

_COVERS = "canonical JSON (RFC 8785) of the data set's manifest, which has the digest of each pool"


def data_component(digest: Digest, store: Path) -> Part:
    """A data set; raises EvidenceError if its manifest in the store was changed.

    If it was deleted or prepared in another store, only the digest is known.
    """
    stored = prepared_dataset(digest, store)
    return component(
        "data",
        f"data-set-{short(digest)}",
        digest,
        _COVERS,
        _properties(stored.dataset) if stored else None,
        licenses=licences_of(stored.dataset.licences.keys() - {UNSTATED}) if stored else None,
        data=[{"type": "dataset"}],
    )


def corpus_component(name: str, corpus: CorpusUse) -> Part:
    """A corpus that a stage was trained on in addition to its data set."""
    return component(
        "data",
        f"corpus-{name}",
        corpus.content,
        "canonical JSON (RFC 8785) of the digests of the corpus' files by name",
        {"documents": corpus.num_documents, "tokens": corpus.num_tokens, "share": corpus.share},
        data=[{"type": "dataset"}],
    )


def _properties(dataset: DataSet) -> dict[str, object]:
    return {
        "trajectories": dataset.num_trajectories,
        "samples": {name: file.num_samples for name, file in dataset.pools.items()},
        "turns": {name: file.num_turns for name, file in dataset.pools.items()},
        "domains": dataset.domains,
        "sources": dataset.sources,
        "licences": dataset.licences,
        "filtered": dataset.filtered,
        "quarantined": dataset.quarantined,
        "recipe": digest_json(dataset.recipe),
        "collected": [parent.collected for parent in dataset.parents],
        "imported-from": [parent.form for parent in dataset.parents],
    }
