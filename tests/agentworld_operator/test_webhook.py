"""The webhook's server, without a cluster: what it takes, its timeouts, and its certificate."""

import asyncio
import json
import socket
import ssl
import struct
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from agentworld.engine.process import free_port
from agentworld.errors import InputError
from agentworld_operator.authority import apply_decision
from agentworld_operator.policy.admission import API_VERSION, Denial
from agentworld_operator.webhook import RequestTimeouts, ServingCertificate, serve
from make.simulator import simulator

NOW = datetime.now(UTC)
PATIENT = RequestTimeouts(60, 60)
FILES = apply_decision({}, "make both", ["127.0.0.1"], NOW)
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


def write(folder, files=FILES):
    for name in ("tls.crt", "tls.key"):
        (folder / name).write_bytes(files[name])


@asynccontextmanager
async def served(folder, decide, files=FILES, clients=None, shown=None, timeouts=PATIENT):
    port, certificate = free_port(), ServingCertificate(folder, clients)
    bundle = folder / "ca.crt"
    bundle.write_bytes(files["ca.crt"])
    url = f"https://127.0.0.1:{port}"
    believing = ssl.create_default_context(cafile=bundle)
    if shown:
        believing.load_cert_chain(*shown)
    async with (
        serve(decide, certificate, "127.0.0.1", port, every_seconds=0.02, timeouts=timeouts),
        httpx.AsyncClient(base_url=url, verify=believing, trust_env=False) as client,
    ):
        while (folder / "tls.crt").exists() and not certificate.is_ready:
            await asyncio.sleep(0.01)
        yield client


def told(folder, body, decide=None, timeouts=PATIENT):
    """The answer to one request."""

    async def let_in(_asked):
        return None

    async def ask():
        write(folder)
        async with served(folder, decide or let_in, timeouts=timeouts) as client:
            return await client.post("/admit", content=body)

    return asyncio.run(ask())


def decided(folder, decide, timeouts=PATIENT):
    return told(folder, json.dumps(REVIEW), decide, timeouts).json()["response"]


def test_a_review_is_answered_with_the_decision(tmp_path):
    async def refuse(asked):
        return Denial(f"{asked.object_name} is not wanted", 409)

    found = decided(tmp_path, refuse)
    assert (found["allowed"], found["status"]["message"]) == (False, "one is not wanted")
    assert told(tmp_path, json.dumps(REVIEW)).json()["response"] == {"uid": "7", "allowed": True}


@pytest.mark.waits
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"nonsense", 400), (b"{}", 400), (b"[" * 100_000, 400), (b" " * 2**24, 413)],
    ids=["empty", "nonsense", "another", "deep", "large"],
)
def test_what_is_no_review_is_turned_away(tmp_path, body, status):
    assert told(tmp_path, body).status_code == status


def test_a_decision_that_takes_too_long_lets_nothing_in(tmp_path):
    async def never(_asked):
        await asyncio.sleep(60)

    said = decided(tmp_path, never, RequestTimeouts(60, 0.2))
    assert said["status"]["code"] == 504


def test_a_mistake_of_ours_lets_nothing_in(tmp_path):
    async def wrong(_asked):
        raise ZeroDivisionError

    assert decided(tmp_path, wrong)["status"]["code"] == 500


@pytest.mark.waits
def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path):
    async def ask():
        async def slowly():
            yield b"{"
            await asyncio.sleep(1)
            yield b"}"

        write(tmp_path)
        async with served(tmp_path, None, timeouts=RequestTimeouts(0.2, 60)) as client:
            return await client.post("/admit", content=slowly())

    assert asyncio.run(ask()).status_code == 408


def test_a_request_that_breaks_off_is_no_mistake_of_ours(tmp_path, caplog):
    async def ask():
        write(tmp_path)
        async with served(tmp_path, None) as client:
            believing = ssl.create_default_context(cafile=tmp_path / "ca.crt")
            port = client.base_url.port
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=believing)
            writer.write(b"POST /admit HTTP/1.1\r\nHost: me\r\nContent-Length: 9\r\n\r\n{")
            await writer.drain()
            await asyncio.sleep(0.05)
            reset = struct.pack("ii", 1, 0)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            writer.transport.abort()
            await asyncio.sleep(0.05)

    asyncio.run(ask())
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(("shows", "status"), [(True, 200), (False, 401)])
def test_where_the_api_server_shows_a_certificate_nobody_else_is_answered(tmp_path, shows, status):
    async def let_in(_asked):
        return None

    async def ask():
        write(tmp_path)
        clients = tmp_path / "clients.crt"
        clients.write_bytes(client_certificate(tmp_path))
        shown = (clients, tmp_path / "client.key") if shows else None
        async with served(tmp_path, let_in, clients=clients, shown=shown) as client:
            assert (await client.get("/ready")).status_code == 200
            return await client.post("/admit", content=json.dumps(REVIEW))

    assert asyncio.run(ask()).status_code == status


def client_certificate(folder):
    """Its own authority; the key is beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "kube-apiserver")])
    basic = x509.BasicConstraints(ca=True, path_length=0)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(basic, critical=True)
        .sign(key, SHA256())
    )
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "client.key").write_bytes(written)
    return made.public_bytes(Encoding.PEM)


def test_an_authority_that_is_none_is_told_in_a_sentence(tmp_path):
    (tmp_path / "clients.crt").write_text("nonsense")
    for path in (tmp_path / "clients.crt", tmp_path / "nowhere.crt"):
        with pytest.raises(InputError, match="holds no authority"):
            ServingCertificate(tmp_path, path)


def test_it_listens_before_it_has_a_certificate_and_is_ready_once_it_has_one(tmp_path):
    async def ask():
        async with served(tmp_path, None) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/ready")
            write(tmp_path)
            while True:
                try:
                    return (await client.get("/ready")).status_code
                except httpx.ConnectError:
                    await asyncio.sleep(0.02)

    assert asyncio.run(ask()) == 200


def test_a_certificate_that_is_half_written_is_left_alone(tmp_path):
    other = apply_decision(FILES, "renew serving", ["127.0.0.1"], NOW)
    write(tmp_path)
    certificate = ServingCertificate(tmp_path)
    certificate.refresh()
    known = certificate._read
    (tmp_path / "tls.crt").write_bytes(other["tls.crt"])
    certificate.refresh()
    assert certificate._read == known
    write(tmp_path, other)
    certificate.refresh()
    assert certificate._read == (other["tls.crt"], other["tls.key"])


def test_a_port_that_somebody_has_is_told_in_a_sentence(tmp_path):
    async def twice():
        port = free_port()
        async with serve(None, ServingCertificate(tmp_path), "127.0.0.1", port):
            await serve(None, ServingCertificate(tmp_path), "127.0.0.1", port).__aenter__()

    with pytest.raises(InputError, match="cannot listen on 127.0.0.1"):
        asyncio.run(twice())
