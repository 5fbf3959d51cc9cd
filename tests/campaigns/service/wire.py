"""Records HTTP responses before clients see them."""

import json
import time

import httpx

from campaigns.harness.journal import Journal

SIMULATOR_HEADER = "x-agentworld-simulator"

# After a refusal, a request goes to a random replica, not to the connected one.
_LIMITS = httpx.Limits(keepalive_expiry=0.1)


class JournalledTransport(httpx.AsyncBaseTransport):
    """Forwards complete responses, each after it is in the journal."""

    def __init__(
        self, client: str, journal: Journal, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._client = client
        self._journal = journal
        self._inner = inner or httpx.AsyncHTTPTransport(trust_env=False, limits=_LIMITS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request_fields = {
            "client": self._client,
            "method": request.method,
            "path": request.url.path,
            "body": json.loads(request.content or b"null"),
            "sent": time.time(),
        }
        try:
            response = await self._read(request)
        except httpx.TransportError as error:
            self._journal.write(**request_fields, lost=type(error).__name__)
            raise
        simulator = response.headers.get(SIMULATOR_HEADER)
        response_fields = {
            "status": response.status_code,
            "simulator": simulator,
            "text": response.text,
        }
        self._journal.write(**request_fields, **response_fields)
        return response

    async def _read(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        try:
            await response.aread()
        finally:
            await response.aclose()
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()
