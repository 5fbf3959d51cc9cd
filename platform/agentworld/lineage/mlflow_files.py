"""The files that an MLflow keeps. MLflow opens whatever lies on this machine's disk; here only
regular files are.
"""

from pathlib import Path
from urllib.parse import urlsplit

import mlflow
from mlflow.utils.file_utils import local_file_uri_to_path

from agentworld.errors import StoreError
from agentworld.records.checkpoint import model_files
from agentworld.records.file import read_regular


def read_text(uri: str) -> str:
    """A file; raises StoreError for one of this machine that cannot be read as text."""
    if not is_local(uri):
        return str(mlflow.artifacts.load_text(uri))
    try:
        return read_regular(Path(local_file_uri_to_path(uri))).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"the registry's file {uri} cannot be read: {reason}; restore it", retryable=False
        ) from error


def download(uri: str, address: str | None, target: Path) -> None:
    """Copies the files of a model, which are at `address` where that is known, into a folder.

    Raises InputError for what is neither a file nor a folder.
    """
    if address and is_local(address) and (folder := Path(local_file_uri_to_path(address))).exists():
        model_files(folder)
    mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=str(target))


def is_local(uri: str) -> bool:
    return urlsplit(uri).scheme in ("", "file")
