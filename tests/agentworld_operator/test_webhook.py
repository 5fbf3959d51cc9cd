"""The webhook's server, without a cluster: what it answers, its timeouts, and its certificate."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme

from agentworld.engine.process import LOOPBACK, free_port
from agentworld_operator.policy.admission import API_VERSION, Denial
from agentworld_operator.settings import WebhookSettings
from agentworld_operator.webhook import serve
from make.certificates import mount, new_files
from make.simulator import simulator
from waiting import DEADLINE

pytestmark = pytest.mark.waits

AUTHORITY = trustme.CA()
FILES = new_files(AUTHORITY)
REVIEW = {
    "apiVersion": API_VERSION,
    "kind": "AdmissionReview",
    "request": {
        "uid": "7",
        "kind": {"kind": "Simulator"},
        "namespace": "worlds",
        "operation": "CREATE",
        "object": simulator(),
    },
}


async def admit(_asked):
    return None


@asynccontextmanager
async def webhook_client(folder, decide=admit, seconds=60.0, shown=None, **settings):
    """A client of a webhook with the certificate that the folder has."""
    webhook = WebhookSettings(
        port=free_port(), host=LOOPBACK, folder=folder, reload_seconds=0.02, **settings
    )
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    if shown:
        shown.configure_cert(context)
    url = f"https://{LOOPBACK}:{webhook.port}"
    async with (
        serve(decide, webhook, decide_seconds=seconds),
        httpx.AsyncClient(
            base_url=url, verify=context, trust_env=False, timeout=DEADLINE
        ) as client,
    ):
        yield client


async def first_answer(client, body=None):
    """The first answer of the webhook, once it listens."""
    while True:
        try:
            return await client.post("/admit", content=body or json.dumps(REVIEW))
        except httpx.ConnectError:
            await asyncio.sleep(0.01)


def post_review(folder, body=None, *args, **settings):
    """The answer to one request."""

    async def ask():
        mount(FILES, folder)
        async with webhook_client(folder, *args, **settings) as client:
            return await first_answer(client, body)

    return asyncio.run(ask())


def test_a_review_is_answered_with_the_decision(tmp_path):
    async def refuse(request):
        return Denial(f"{request.object_name} is not wanted", 409)

    response = post_review(tmp_path, None, refuse).json()["response"]
    assert (response["allowed"], response["status"]["message"]) == (False, "one is not wanted")
    assert post_review(tmp_path).json()["response"] == {"uid": "7", "allowed": True}


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"nonsense", 400), (b"{}", 400), (b"[" * 100_000, 500)],
    ids=["nonsense", "another", "deep"],
)
def test_an_invalid_review_is_rejected(tmp_path, body, status):
    assert post_review(tmp_path, body).status_code == status


def test_a_decision_that_takes_too_long_denies_the_request(tmp_path):
    async def never(_asked):
        await asyncio.sleep(60)

    assert post_review(tmp_path, None, never, 0.2).json()["response"]["status"]["code"] == 504


def test_a_programming_error_denies_the_request(tmp_path):
    async def wrong(_asked):
        raise ZeroDivisionError

    assert post_review(tmp_path, None, wrong).json()["response"]["status"]["code"] == 500


def test_with_a_client_ca_a_client_without_a_certificate_is_rejected(tmp_path):
    clients = trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.crt")
    certificate = clients.issue_cert("kube-apiserver")
    settings = {"client_ca": tmp_path / "clients.crt"}
    assert post_review(tmp_path, shown=certificate, **settings).status_code == 200
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        post_review(tmp_path, **settings)


def test_the_webhook_listens_once_a_certificate_exists(tmp_path, caplog):
    async def ask():
        async with webhook_client(tmp_path) as client:
            while "cannot listen" not in caplog.text:
                await asyncio.sleep(0.01)
            mount(FILES, tmp_path)
            return await first_answer(client)

    assert asyncio.run(asyncio.wait_for(ask(), DEADLINE)).is_success
    assert f"with the certificate in {tmp_path}" in caplog.text


async def new_connection(client):
    """The certificate that a new connection gets."""
    async with client.stream("POST", "/admit", headers={"connection": "close"}) as answer:
        stream = answer.extensions["network_stream"]
        return stream.get_extra_info("ssl_object").getpeercert(True)


def test_a_new_certificate_is_served_while_a_request_is_in_progress(tmp_path):
    request_arrived, certificate_changed = asyncio.Event(), asyncio.Event()

    async def decide(_asked):
        request_arrived.set()
        await certificate_changed.wait()

    async def renew():
        mount(FILES, tmp_path)
        async with webhook_client(tmp_path, decide) as client:
            task = asyncio.create_task(first_answer(client))
            await request_arrived.wait()
            first = await new_connection(client)
            mount(new_files(AUTHORITY), tmp_path)
            while await new_connection(client) == first:
                await asyncio.sleep(0.01)
            certificate_changed.set()
            return await task

    assert asyncio.run(asyncio.wait_for(renew(), DEADLINE)).json()["response"]["allowed"]


def test_a_certificate_that_cannot_be_loaded_leaves_the_previous_one(tmp_path, caplog):
    async def renew():
        mount(FILES, tmp_path)
        async with webhook_client(tmp_path) as client:
            await first_answer(client)
            first = await new_connection(client)
            mount(FILES | {"tls.crt": new_files(AUTHORITY)["tls.crt"]}, tmp_path)
            while "keeps its certificate" not in caplog.text:
                await asyncio.sleep(0.01)
            return first, await new_connection(client)

    first, second = asyncio.run(asyncio.wait_for(renew(), DEADLINE))
    assert first == second


def test_a_client_that_sends_no_body_does_not_delay_the_end(tmp_path):
    async def end():
        mount(FILES, tmp_path)
        async with webhook_client(tmp_path, seconds=0.2) as client:
            await first_answer(client)
            context = ssl.create_default_context()
            AUTHORITY.configure_trust(context)
            url = client.base_url
            reader, writer = await asyncio.open_connection(url.host, url.port, ssl=context)
            writer.write(b"POST /admit HTTP/1.1\r\nHost: webhook\r\nContent-Length: 9\r\n\r\n")
            await writer.drain()
            await new_connection(client)  # the webhook has read the request above
        writer.close()
        return await reader.read()

    assert b" 200 " not in asyncio.run(asyncio.wait_for(end(), DEADLINE))


def test_a_port_in_use_is_logged(tmp_path, caplog):
    async def serve_twice():
        mount(FILES, tmp_path)
        webhook = WebhookSettings(port=free_port(), host=LOOPBACK, folder=tmp_path)
        other_server = await asyncio.start_server(lambda *_: None, LOOPBACK, webhook.port)
        async with other_server, serve(admit, webhook):
            while "cannot listen" not in caplog.text:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(serve_twice(), DEADLINE))
    assert "address already in use" in caplog.text
