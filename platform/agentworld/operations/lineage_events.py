"""Sends OpenLineage events while a stage is trained, to the configured address.

A thread sends them, so the training neither waits for the address nor fails with it.
"""

import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError, Preempted
from agentworld.recipes.environment import from_environment
from agentworld.records.base import Digest
from agentworld.records.garbled import redact
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.runner.failure import sentence_of
from agentworld.runner.folders import checkpoint_of

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent, RunState
    from openlineage.client.transport import Transport

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_EVENTS = 60.0
_SECONDS_TO_CLOSE = 10.0
_MOST_WAITING = 10
_MODELS = ("parent", "base", "reward_model")
_DATA = ("data", "traces")
_CORPUS = "corpus "


class LineageSettings(BaseSettings):
    """The address of events, from OpenLineage's own variables."""

    model_config = SettingsConfigDict(env_prefix="OPENLINEAGE_", env_ignore_empty=True, frozen=True)

    url: str = ""
    """`http://HOST`, `https://HOST`, or `file:///PATH` for a file; empty sends no events."""
    endpoint: str = "api/v1/lineage"
    """The path at the server."""
    api_key: SecretStr = SecretStr("")
    """A bearer token for the server."""


@contextmanager
def lineage_events(folder: Path, inputs: Mapping[str, Digest]) -> Iterator[OnMetrics]:
    """Sends START, RUNNING with figures every minute, and COMPLETE, FAIL or ABORT at the end.

    `inputs` are the step's inputs by name. Raises InputError for an address of an unknown kind.
    """
    settings = from_environment(LineageSettings)
    if not settings.url:
        yield ignore_metrics
        return
    from openlineage.client.event_v2 import RunState

    training = _Training(folder, inputs, _Sender(_transport(settings), redact(settings.url)))
    training.send(RunState.START)
    try:
        yield training.on_metrics
    except BaseException as error:
        is_failure = isinstance(error, Exception) and not isinstance(error, Preempted)
        reason = sentence_of(error) if isinstance(error, Exception) else type(error).__name__
        training.send(RunState.FAIL if is_failure else RunState.ABORT, failure=reason)
        training.close()
        raise
    training.send(RunState.COMPLETE, output=checkpoint_of(folder).artifact)
    training.close()


class _Training:
    """A run of the job that is named after the stage. Each attempt of a step is a separate run."""

    def __init__(self, folder: Path, inputs: Mapping[str, Digest], sender: "_Sender") -> None:
        from agentworld.audit.export.lineage_event import DATA, MODEL, Asset, JobRun

        read = [
            Asset(digest, MODEL if name in _MODELS else DATA)
            for name, digest in inputs.items()
            if name in (*_MODELS, *_DATA) or name.startswith(_CORPUS)
        ]
        name = f"{folder.parent.name}/{folder.name}"
        self._job_run = JobRun(
            str(uuid.uuid4()), folder.parent.name, tuple(read), {"training": name}
        )
        self._sender = sender
        self._last_event = time.monotonic()

    def on_metrics(self, step: int, figures: Mapping[str, float]) -> None:
        from openlineage.client.event_v2 import RunState

        now = time.monotonic()
        if now - self._last_event >= _SECONDS_BETWEEN_EVENTS and self._sender.has_room:
            self._last_event = now
            self.send(RunState.RUNNING, tags={"step": str(step), **_as_tags(figures)})

    def send(
        self,
        state: "RunState",
        *,
        tags: Mapping[str, str] = {},
        output: Digest | None = None,
        failure: str = "",
    ) -> None:
        from agentworld.audit.export.lineage_event import MODEL, Asset, run_event

        job_run = self._job_run._replace(tags={**self._job_run.tags, **tags})
        outputs = [Asset(output, MODEL)] if output else []
        now = datetime.now(UTC).isoformat()
        self._sender.add(run_event(job_run, state, now, outputs=outputs, failure=failure))

    def close(self) -> None:
        self._sender.close()


class _Sender:
    def __init__(self, transport: "Transport", address: str) -> None:
        self._transport = transport
        self._address = address
        self._events: SimpleQueue[RunEvent | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="lineage", daemon=True)
        self._thread.start()

    @property
    def has_room(self) -> bool:
        """False while events are queued because the address does not answer."""
        return self._events.qsize() < _MOST_WAITING

    def add(self, event: "RunEvent") -> None:
        self._events.put(event)

    def close(self) -> None:
        """Waits at most ten seconds."""
        self._events.put(None)
        self._thread.join(_SECONDS_TO_CLOSE)
        if self._thread.is_alive():
            _log.warning("the last lineage events were not sent to %s", self._address)

    def _run(self) -> None:
        while event := self._events.get():
            try:
                self._transport.emit(event)
            except Exception as error:  # noqa: BLE001  whatever the client raises, training goes on
                _log.warning(
                    "a lineage event was not sent to %s: %s", self._address, redact(str(error))
                )


def _transport(settings: LineageSettings) -> "Transport":
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

    scheme, separator, path = settings.url.partition("://")
    if scheme == "file" and path.startswith("/"):
        return FileTransport(FileConfig(settings.url, append=True))
    if scheme not in ("http", "https") or not separator or not path:
        raise InputError(
            f"OPENLINEAGE_URL is {redact(settings.url)}; set it to http://HOST, https://HOST or"
            " file:///PATH"
        )
    config = HttpConfig(settings.url, settings.endpoint)
    if key := settings.api_key.get_secret_value():
        config.auth = ApiKeyTokenProvider({"api_key": key})
    return HttpTransport(config)


def _as_tags(figures: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{value:g}" for name, value in figures.items()}
