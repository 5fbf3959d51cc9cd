"""A simulator service in this process, for environments that call it as over HTTP."""

from collections.abc import Callable

import httpx
import pytest

from make import records
from make.service import Service, service, shell


@pytest.fixture
def serve(tmp_path) -> Callable[..., Service]:
    """Starts a service with a response and a manifest of the test."""

    def start(answer=shell, **manifest) -> Service:
        return service(tmp_path, answer, records.manifest(**manifest))

    return start


class Losing(httpx.AsyncBaseTransport):
    """Passes every request to the service, and loses the responses to the paths of `is_lost`."""

    def __init__(self, app, is_lost):
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._lost = is_lost
        self.paths = []

    async def handle_async_request(self, request):
        response = await self._inner.handle_async_request(request)
        self.paths.append(request.url.path)
        if self._lost(request.url.path):
            raise httpx.ReadError("lost", request=request)
        return response


@pytest.fixture
def losing():
    return Losing
