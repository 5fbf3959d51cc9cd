"""Downloads a model from a hub, at one commit. HF_ENDPOINT names the hub."""

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, RepoFile, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars

from agentworld.errors import InputError, StoreError
from agentworld.records.base import digest_file
from agentworld.records.garbled import redact
from agentworld.storage.bases import path_in

_HUB = "https://huggingface.co"
_FILES = (
    *("*.safetensors", "*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt"),
    *("LICENSE*", "README*", "NOTICE*"),
)
"""The files that a model is loaded from, and its licence: no pickles, no code."""
_OTHER_FORMS = ("consolidated*", "original/*", "onnx/*", "openvino/*", "coreml/*")
"""Other copies of the same weights."""
_CHATTY = ("huggingface_hub", "httpx2")
"""Loggers that write addresses with passwords."""


class HubModel:
    """A BaseSource. A commit never changes, so it is downloaded once."""

    def __init__(self, name: str, commit: str) -> None:
        self._name = name
        self._commit = commit
        self.address = f"{name}@{commit}"

    def stamp(self) -> str:
        """The commit."""
        return self._commit

    def fetch(self, folder: Path) -> None:
        """Downloads missing or incomplete files, and compares every file with the hub's digest."""
        endpoint = os.environ.get("HF_ENDPOINT") or _HUB
        disable_progress_bars()
        try:
            with _reaching_the_hub():
                files = self._download(endpoint, folder)
        except HFValidationError as error:
            raise InputError(
                f"{self.address} names no model of a hub ({_reason(error)}); write"
                " ORGANISATION/MODEL@COMMIT"
            ) from error
        except (RepositoryNotFoundError, RevisionNotFoundError, GatedRepoError) as error:
            raise InputError(
                f"{redact(endpoint)} has no {self.address} ({_reason(error)}); check name and"
                " commit, and set HF_TOKEN where the model is not open to all"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, RuntimeError) as error:
            raise StoreError(
                f"{self.address} cannot be fetched from {redact(endpoint)} ({_reason(error)}); set"
                " HF_ENDPOINT to a hub that is reached from here, or name a folder or"
                " s3://BUCKET/FOLDER"
            ) from error
        except (ValueError, LookupError, TypeError) as error:
            raise StoreError(
                f"{redact(endpoint)} does not answer as a hub when asked for {self.address}"
                f" ({_reason(error)}); set HF_ENDPOINT to the address of a hub"
            ) from error
        for file in files:
            self._check(file, folder / file.path)

    def _download(self, endpoint: str, folder: Path) -> list[RepoFile]:
        entries = HfApi(endpoint).list_repo_tree(self._name, recursive=True, revision=self._commit)
        files = [entry for entry in entries if isinstance(entry, RepoFile)]
        for file in files:
            path_in(folder, file.path, self.address)
        snapshot_download(
            self._name,
            revision=self._commit,
            local_dir=folder,
            endpoint=endpoint,
            allow_patterns=list(_FILES),
            ignore_patterns=list(_OTHER_FORMS),
        )
        return files

    def _check(self, file: RepoFile, path: Path) -> None:
        """Raises StoreError for a file with another digest than the hub has for it."""
        if not path.is_file():
            return  # not used here
        if file.lfs:
            is_same = digest_file(path) == f"sha256:{file.lfs.sha256}"
        else:
            is_same = _git_digest(path) == file.blob_id
        if not is_same:
            path.unlink()
            raise StoreError(
                f"{file.path} of {self.address} is damaged: its digest differs from the hub's; run"
                " the command again"
            )


@contextmanager
def _reaching_the_hub() -> Iterator[None]:
    """Allows access to the hub in this block.

    The platform sets HF_HUB_OFFLINE in all processes, so that libraries do not contact a hub by
    themselves; here a recipe names a hub's model. The client's loggers are silenced meanwhile;
    errors say what failed.
    """
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, False
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in _CHATTY}
    try:
        for logger in levels:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        for logger, level in levels.items():
            logger.setLevel(level)


def _git_digest(path: Path) -> str:
    """The id that git gives the file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _reason(error: Exception) -> str:
    return redact(" ".join(str(error.__cause__ or error).split()))[:200]
