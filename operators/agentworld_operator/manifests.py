"""Manifests that are kept elsewhere, and referred to."""

from agentworld.errors import NotFound
from agentworld.storage.address import shown
from agentworld.storage.folder import open_folder, translated


def read_manifest(url: str) -> bytes:
    """A file in a folder or a bucket; raises NotFound, and StoreError. Blocks."""
    folder, _, name = url.rpartition("/")
    with translated(shown(url)):
        try:
            return open_folder(folder).read(name)
        except FileNotFoundError as error:
            raise NotFound(f"there is no {shown(url)}; put the manifest there") from error
