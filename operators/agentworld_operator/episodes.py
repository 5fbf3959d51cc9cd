"""The number of open episodes, from the metrics of the simulator service."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from agentworld.records.base import Digest
from agentworld_operator.service import service_client

_log = logging.getLogger(__name__)

_NAME = "agentworld_open_episodes"


class OpenEpisodes:
    """The numbers of the last response; unknown if the service did not answer."""

    def __init__(self, url: str, token: Path | None) -> None:
        """`token` is the file of a credential, which a cluster rotates."""
        self._url = url.rstrip("/") + "/metrics"
        self._token = token
        self._counts: Mapping[Digest, int] | None = None

    def of(self, digest: Digest) -> int | None:
        """The open episodes of one simulator; null if unknown."""
        return None if self._counts is None else self._counts.get(digest, 0)

    async def ask(self, on_change: Callable[[Digest], None]) -> None:
        """Requests the metrics once; calls `on_change` for every simulator whose number changed."""
        before, self._counts = self._counts, await self._fetch()
        if (before is None) != (self._counts is None):
            _log.info("the service %s", "tells" if self._counts is not None else "does not tell")
        previous, current = before or {}, self._counts or {}
        for digest in previous.keys() | current.keys():
            if previous.get(digest, 0) != current.get(digest, 0):
                on_change(digest)

    async def _fetch(self) -> Mapping[Digest, int] | None:
        try:
            async with service_client(self._token) as client:
                answer = await client.get(self._url)
            answer.raise_for_status()
            return _read(answer.text)
        except (httpx.HTTPError, OSError, ValueError) as error:
            _log.warning("%s did not return its open episodes: %s", self._url, error)
            return None


def _read(text: str) -> dict[Digest, int]:
    families = text_string_to_metric_families(text)
    samples = [sample for family in families if family.name == _NAME for sample in family.samples]
    return {sample.labels["simulator"]: int(sample.value) for sample in samples}
