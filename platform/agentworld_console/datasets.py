"""The data sets that one caller may see."""

from agentworld.audit.questions.dataset import Reader, data_sets
from agentworld.records.base import Digest
from agentworld.records.dataset import DataSet
from agentworld.storage.datasets import readable_dataset
from agentworld_console.scoped_view import ScopedView


class DataSets:
    """Prepared or read data sets, and the simulators that were made from them."""

    def __init__(self, view: ScopedView) -> None:
        self._view = view
        self._all_readers = data_sets(view.sources)

    def readers_by_data(self) -> dict[Digest, tuple[Reader, ...]]:
        """Data sets with the world models that read them, behind simulators that are visible."""
        if self._view.is_whole:
            return self._all_readers
        own = {data: self._visible(readers) for data, readers in self._all_readers.items()}
        return {data: readers for data, readers in own.items() if readers}

    def manifest(self, digest: Digest) -> DataSet | None:
        """The manifest, which names sources; null unless the caller sees all tenants."""
        return readable_dataset(digest, self._view.library.store) if self._view.is_whole else None

    def find(self, name: str) -> list[Digest]:
        """The data set of a whole digest, for every caller; or the visible ones with this start."""
        whole = name if name.startswith("sha256:") else f"sha256:{name}"
        if whole in self._all_readers:
            return [whole]
        return sorted(digest for digest in self.readers_by_data() if digest.startswith(whole))

    def simulators(self, readers: tuple[Reader, ...]) -> dict[Digest, Reader]:
        """The visible simulators of this store that serve one of these world models."""
        by_weights = {reader.artifact: reader for reader in reversed(readers)}
        artifacts = (
            (digest, manifest.artifact) for digest, manifest in self._view.manifests().items()
        )
        return {
            digest: by_weights[weights]
            for digest, weights in artifacts
            if weights and weights in by_weights
        }

    def _visible(self, readers: tuple[Reader, ...]) -> tuple[Reader, ...]:
        """The visible world models; the name of an invisible base is removed."""
        visible = [reader for reader in readers if reader.artifact in self._view.weights]
        names = {reader.world_model for reader in visible}
        return tuple(
            reader if reader.base in names else reader.model_copy(update={"base": None})
            for reader in visible
        )
