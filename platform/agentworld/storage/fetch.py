"""Files of a model from wherever they are kept, in pieces, for weights fit into no memory."""

from collections.abc import Iterable
from pathlib import Path

from fsspec.core import url_to_fs

from agentworld.errors import NotFound
from agentworld.storage.address import redact
from agentworld.storage.folder import translate_errors


def fetch_files(url: str, names: Iterable[str], folder: Path) -> None:
    """Copies the files of these names; raises NotFound naming one that is not there.

    What was copied before is copied anew: nobody but a digest knows whether it is whole.
    """
    with translate_errors(redact(url)):
        system, root = url_to_fs(url, use_listings_cache=False)
        for name in sorted(names):
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                system.get_file(f"{root.rstrip('/')}/{name}", str(copy))
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no {name} at {redact(url)}; put the model's files there"
                ) from error
