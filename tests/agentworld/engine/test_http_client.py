"""Clients for servers that run a model."""

import asyncio

import pytest

from agentworld import __version__
from agentworld.engine.http_client import open_async_client, open_client
from fakes import endpoint

BODY = {"model": "m"}


def post(url):
    with open_client(url, timeout_seconds=60.0) as client:
        return client.post(url, json=BODY)


def post_asynchronously(url):
    async def work():
        async with open_async_client(url) as client:
            return await client.post("/", json=BODY)

    return asyncio.run(work())


@pytest.mark.parametrize("send", [post, post_asynchronously])
def test_a_local_server_is_requested_without_the_proxy_and_with_a_user_agent(monkeypatch, send):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with endpoint.running(lambda _: "besa") as server:
        assert send(server.url).is_success
    assert server.requests[0].headers["user-agent"] == f"agentworld/{__version__}"


def test_a_remote_server_is_requested_through_the_proxy(monkeypatch):
    with endpoint.running(lambda _: "besa") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert post("http://engine.invalid/").is_success
        assert post_asynchronously("http://engine.invalid").is_success
    assert [request.headers["host"] for request in proxy.requests] == ["engine.invalid"] * 2
