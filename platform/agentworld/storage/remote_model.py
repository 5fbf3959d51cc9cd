"""A model's folder in an object store, or any other file system of fsspec."""

from collections.abc import Mapping
from pathlib import Path

from fsspec.core import url_to_fs

from agentworld.errors import NotFound, StoreError
from agentworld.records.base import digest_json
from agentworld.records.garbled import redact
from agentworld.storage.bases import path_in
from agentworld.storage.folder import TIME_FIELDS, translate_errors

_PIECE_BYTES = 8 << 20
_OF_CONTENT = ("ETag", "etag", "md5Hash", "content_md5", "checksum")
"""The keys, besides the time, that change when an object is overwritten."""


class RemoteModel:
    """A BaseSource. Resumes files that a killed fetch left incomplete."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.address = redact(self._url)

    def stamp(self) -> str:
        """The names, sizes, checksums and times of all objects."""
        with translate_errors(self.address):
            objects = self._list()
        if not objects:
            raise NotFound(f"{self.address} has no files; name the folder of a complete model")
        fields = ("size", *_OF_CONTENT, *TIME_FIELDS)
        return digest_json(
            {
                name: [str(info[field]) for field in fields if field in info]
                for name, info in objects.items()
            }
        )

    def fetch(self, folder: Path) -> None:
        """Copies the objects that are missing or incomplete here."""
        with translate_errors(self.address):
            for name, info in self._list().items():
                path = path_in(folder, name, self.address)
                self._copy(name, int(str(info["size"])), path)

    def _list(self) -> dict[str, Mapping[str, object]]:
        system, root = url_to_fs(self._url, use_listings_cache=False)
        objects = system.find(root, detail=True)
        return {path.removeprefix(f"{root}/"): info for path, info in objects.items()}

    def _copy(self, name: str, size: int, path: Path) -> None:
        if path.is_file() and path.stat().st_size == size:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        system, root = url_to_fs(self._url, use_listings_cache=False)
        with draft.open("ab") as copy:
            while copy.tell() < size:
                end = min(size, copy.tell() + _PIECE_BYTES)
                piece = system.cat_file(f"{root}/{name}", start=copy.tell(), end=end)
                if not piece:
                    raise StoreError(f"{self.address} ends {name} too early; repeat the fetch")
                copy.write(piece)
        draft.replace(path)
