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


async def let_in(_asked):
    return None


@asynccontextmanager
async def served(folder, decide=let_in, seconds=60.0, shown=None, **settings):
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


async def answered(client, body=None):
    """The first answer, once it listens."""
    while True:
        try:
            return await client.post("/admit", content=body or json.dumps(REVIEW))
        except httpx.ConnectError:
            await asyncio.sleep(0.01)


def post_review(folder, body=None, *args, **settings):
    """The answer to one request."""

    async def ask():
        mount(FILES, folder)
        async with served(folder, *args, **settings) as client:
            return await answered(client, body)

    return asyncio.run(ask())


def test_a_review_is_answered_with_the_decision(tmp_path):
    async def refuse(asked):
        return Denial(f"{asked.object_name} is not wanted", 409)

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
    shown = clients.issue_cert("kube-apiserver")
    known = {"client_ca": tmp_path / "clients.crt"}
    assert post_review(tmp_path, shown=shown, **known).status_code == 200
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        post_review(tmp_path, **known)


def test_the_webhook_listens_once_a_certificate_exists(tmp_path, caplog):
    async def ask():
        async with served(tmp_path) as client:
            while "cannot listen" not in caplog.text:
                await asyncio.sleep(0.01)
            mount(FILES, tmp_path)
            return await answered(client)

    assert asyncio.run(asyncio.wait_for(ask(), DEADLINE)).is_success
    assert f"with the certificate in {tmp_path}" in caplog.text


async def new_connection(client):
    """The certificate that a new connection gets."""
    async with client.stream("POST", "/admit", headers={"connection": "close"}) as answer:
        stream = answer.extensions["network_stream"]
        return stream.get_extra_info("ssl_object").getpeercert(True)


def test_a_new_certificate_is_served_while_a_request_is_in_progress(tmp_path):
    asked, certificate_changed = asyncio.Event(), asyncio.Event()

    async def decide(_asked):
        asked.set()
        await certificate_changed.wait()

    async def renew():
        mount(FILES, tmp_path)
        async with served(tmp_path, decide) as client:
            in_progress = asyncio.create_task(answered(client))
            await asked.wait()
            first = await new_connection(client)
            mount(new_files(AUTHORITY), tmp_path)
            while await new_connection(client) == first:
                await asyncio.sleep(0.01)
            certificate_changed.set()
            return await in_progress

    assert asyncio.run(asyncio.wait_for(renew(), DEADLINE)).json()["response"]["allowed"]


def test_a_certificate_that_cannot_be_loaded_leaves_the_previous_one(tmp_path, caplog):
    async def renew():
        mount(FILES, tmp_path)
        async with served(tmp_path) as client:
            await answered(client)
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
        async with served(tmp_path, seconds=0.2) as client:
            await answered(client)
            context = ssl.create_default_context()
            AUTHORITY.configure_trust(context)
            url = client.base_url
            reader, writer = await asyncio.open_connection(url.host, url.port, ssl=context)
            writer.write(b"POST /admit HTTP/1.1\r\nHost: webhook\r\nContent-Length: 9\r\n\r\n")
            await writer.drain()
            await new_connection(client)  # it has read the request before
        writer.close()
        return await reader.read()

    assert b" 200 " not in asyncio.run(asyncio.wait_for(end(), DEADLINE))


def test_a_port_in_use_is_logged(tmp_path, caplog):
    async def twice():
        mount(FILES, tmp_path)
        with_port = WebhookSettings(port=free_port(), host=LOOPBACK, folder=tmp_path)
        other = await asyncio.start_server(lambda *_: None, LOOPBACK, with_port.port)
        async with other, serve(let_in, with_port):
            while "cannot listen" not in caplog.text:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(twice(), DEADLINE))
    assert "address already in use" in caplog.text
