"""A simulator service in this process, for environments that reach it as over HTTP."""

from collections.abc import Callable

import httpx
import pytest

from make import records
from make.service import Service, service, shell


@pytest.fixture
def serve(tmp_path) -> Callable[..., Service]:
    """Serves with a response and a manifest of the test's own."""

    def start(answer=shell, **manifest) -> Service:
        return service(tmp_path, answer, records.manifest(**manifest))

    return start


class Losing(httpx.AsyncBaseTransport):
    """The service gets every request; the answers that `lost` picks, by path, do not come back."""

    def __init__(self, app, lost):
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._lost = lost
        self.paths = []

    async def handle_async_request(self, request):
        answer = await self._inner.handle_async_request(request)
        self.paths.append(request.url.path)
        if self._lost(request.url.path):
            raise httpx.ReadError("lost", request=request)
        return answer


@pytest.fixture
def losing():
    return Losing
