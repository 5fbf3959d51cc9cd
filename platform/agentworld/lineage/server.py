"""Access to an MLflow server: retries, error messages and files.

MLflow's client retries requests by itself, also ones that create something, which would then exist
twice if a response is lost. Its retries are disabled. This module repeats an operation as a whole,
which finds what it created before.
"""

import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import mlflow
from mlflow.exceptions import MlflowException, RestException
from mlflow.store.entities import PagedList
from mlflow.utils.file_utils import local_file_uri_to_path
from mlflow.utils.workspace_context import get_request_workspace
from requests import exceptions
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from agentworld.errors import StoreError
from agentworld.records.checkpoint import model_files
from agentworld.records.file import read_regular
from agentworld.records.garbled import any_text, reason_of, redact

PATIENCE_SECONDS = 120.0
_FIRST_WAIT_SECONDS = 0.5
_MOST_WAIT_SECONDS = 8.0
_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it contains the password
}
_VARIABLES = ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_WORKSPACE", *_SETTINGS)
# The last stands for a response 408, 429 or 5xx.
_OUTAGES = (exceptions.ConnectionError, exceptions.Timeout, exceptions.RetryError)
_OUTAGE = "Max retries exceeded with url"
"""urllib3's text for all of these; for files that could not be fetched, MLflow keeps only the
text.
"""
_REFUSAL = re.compile(
    "PERMISSION_DENIED|UNAUTHENTICATED|Workspace .* not found|error code 40[13]|40[13] Client Error"
)
"""Refusals of a running server: its plugin's codes, an unknown workspace, or a bare 401 or 403."""

_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
_GARBAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of rows and files that MLflow did not write."""
_BROKEN = re.compile("no such (table|column)|malformed|not a database")
"""SQLite's messages for a broken file, in an error class that is otherwise transient."""
# The second while it opens a file, the third from the file store.
_FAILURES = (MlflowException, SQLAlchemyError, exceptions.RequestException, *_GARBAGE)

# MLflow's settings belong to the process, so threads take turns.
_turn = threading.RLock()
_Answer = TypeVar("_Answer")
_Entity = TypeVar("_Entity")
_log = logging.getLogger(__name__)


class Server:
    """Waits up to `patience_seconds` for an MLflow server that is down or overloaded."""

    def __init__(self, uri: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._uri = uri
        self._display_url = redact(uri)
        self._patience_seconds = patience_seconds
        if not event.contains(Engine, "connect", _take_any_text):  # MLflow creates its own engines
            event.listen(Engine, "connect", _take_any_text)

    def ask(self, work: Callable[[], _Answer]) -> _Answer:
        """Runs `work`, which may run again after it succeeded. Raises StoreError."""
        outage_start, wait = None, _FIRST_WAIT_SECONDS
        while True:
            try:
                with _turn, _current(self._uri):
                    return work()
            except _FAILURES as error:
                # MLflow's messages quote its address; if that has a password, the cause is dropped.
                cause = error if self._display_url == self._uri else None
                if _REFUSAL.search(str(error)):
                    raise self._refusal(error) from cause
                if not _is_outage(error):
                    raise self._failure("failed", error, retryable=_is_transient(error)) from cause
                outage_start = outage_start or self._warn_of_outage(error)
                waited_seconds = time.monotonic() - outage_start
                if waited_seconds + wait > self._patience_seconds:
                    raise self._failure(
                        f"did not respond for {waited_seconds:.0f} s", error
                    ) from cause
            time.sleep(wait)
            wait = min(2 * wait, _MOST_WAIT_SECONDS)

    def _warn_of_outage(self, error: Exception) -> float:
        """Logs the start of an outage once."""
        limit = f"{self._patience_seconds:.0f} s"
        reason = redact(str(error))
        _log.warning(
            "the registry %s does not respond; waiting %s: %s", self._display_url, limit, reason
        )
        return time.monotonic()

    def _failure(self, failure: str, error: Exception, *, retryable: bool = True) -> StoreError:
        advice = "check that it runs" if retryable else "check what it holds"
        message = f"the registry {self._display_url} {failure}: {_reason(error)}; {advice}"
        return StoreError(message, retryable=retryable)

    def _refusal(self, error: Exception) -> StoreError:
        workspace = get_request_workspace()  # as named, or the configured namespace
        suffix = f" in workspace {workspace!r}" if workspace else ""
        return StoreError(
            f"the registry {self._display_url} refused: {_reason(error)}; "
            f"check the account's token and its rights{suffix}",
            retryable=False,
        )


def _take_any_text(connection: object, _record: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.text_factory = any_text


def _reason(error: Exception) -> str:
    """The message of a plugin, which MLflow treats as a malformed response, or the error's own."""
    garbage = error.__cause__ if isinstance(error, MlflowException) else error
    if isinstance(garbage, _GARBAGE) and not isinstance(garbage, exceptions.RequestException):
        return reason_of(garbage)
    error_fields = error.json.get("error") if isinstance(error, RestException) else None
    message = (
        ": ".join(map(str, error_fields.values())) if isinstance(error_fields, dict) else str(error)
    )
    return " ".join(redact(message).split())[:200].rstrip(".")


def _is_transient(error: Exception) -> bool:
    """Whether a retry may succeed: the error is not about the registry's content."""
    if isinstance(error, MlflowException):
        is_busy = error.error_code == "TEMPORARILY_UNAVAILABLE"
    else:
        is_busy = isinstance(error, OperationalError | exceptions.RequestException)
    return is_busy and not _BROKEN.search(str(error))


def _is_outage(error: BaseException | None) -> bool:
    """Whether the cause or the message of MLflow's error is an outage."""
    while error is not None:
        if isinstance(error, _OUTAGES) or _OUTAGE in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _current(uri: str) -> Iterator[None]:
    """Sets the process's registry address, which MLflow uses for `models:/` instead of the
    client's.

    MLflow also puts that setting into the environment, where it would look like the user's own;
    this restores it.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    os.environ.update(_SETTINGS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})


def read_text(uri: str) -> str:
    """A file of a version; raises StoreError if a local one cannot be read as text.

    MLflow opens any local file; this only opens regular files.
    """
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
    """Copies the files of a model, from `address` if that is known, into a folder.

    Raises InputError for anything other than a file or a folder.
    """
    if address and is_local(address) and (folder := Path(local_file_uri_to_path(address))).exists():
        model_files(folder)
    mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=str(target))


def is_local(uri: str) -> bool:
    """Whether the URI is a local path."""
    return urlsplit(uri).scheme in ("", "file")


def none_if_missing(get: Callable[[], _Entity]) -> _Entity | None:
    """The result of `get`, or null if it is missing."""
    try:
        return get()
    except MlflowException as error:
        if error.error_code not in _ABSENT:
            raise
        return None


def every(search: Callable[..., PagedList[_Entity]], condition: str | None = None) -> list[_Entity]:
    """All results of a search."""
    parts: Iterator[list[_Entity]] = pages(search, condition)
    return [entity for part in parts for entity in part]


def pages(
    search: Callable[..., PagedList[_Entity]], condition: str | None = None
) -> Iterator[list[_Entity]]:
    """The results of a search, page by page."""
    token = None
    while True:
        page = search(condition, page_token=token)
        yield page
        token = page.token
        if not token:
            return
