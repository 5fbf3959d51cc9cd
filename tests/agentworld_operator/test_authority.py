"""Certificates over the years, and whether a TLS client believes each of them."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from agentworld_operator.authority import apply_decision, read_certificates
from agentworld_operator.policy.certificates import decide

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAMES = ("webhook.agentworld.svc", "127.0.0.1")


def next_round(files, now=NOW, names=NAMES):
    return apply_decision(files, decide(read_certificates(files), names, now), names, now)


def is_believed(bundle, files, now=NOW):
    """As a server that demands what a web's authorities have to keep."""
    store = x509.verification.Store(x509.load_pem_x509_certificates(bundle))
    builder = x509.verification.PolicyBuilder().store(store).time(now)
    verifier = builder.build_server_verifier(x509.DNSName(NAMES[0]))
    try:
        verifier.verify(x509.load_pem_x509_certificate(files["tls.crt"]), [])
    except x509.verification.VerificationError:
        return False
    return True


def test_the_first_round_makes_what_a_client_believes_and_the_second_keeps_it():
    files = next_round({})
    assert set(files) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert read_certificates(files).serving.names == NAMES
    assert is_believed(files["ca.crt"], files)
    assert next_round(files) == files


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "tls.key", "tls.crt"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_what_is_lost_or_spoilt_is_made_anew(name, content):
    files = dict(next_round({}))
    if content is None:
        del files[name]
    else:
        files[name] = content
    mended = next_round(files)
    assert is_believed(mended["ca.crt"], mended)
    assert next_round(mended) == mended
    assert (mended["ca.crt"] == files.get("ca.crt")) == name.startswith("tls")


def test_a_certificate_with_another_ones_key_is_none():
    files = dict(next_round({}))
    files["tls.key"] = next_round({})["tls.key"]
    assert read_certificates(files).serving is None


def test_names_that_changed_get_a_certificate_of_the_same_authority():
    files = next_round({})
    named = next_round(files, names=("webhook.other.svc",))
    assert (named["ca.crt"], named["ca.key"]) == (files["ca.crt"], files["ca.key"])
    assert read_certificates(named).serving.names == ("webhook.other.svc",)


@pytest.mark.waits
def test_over_thirty_years_what_is_served_is_believed_by_who_heard_of_the_round_before():
    """The bundle is told after each round, and servers take up a certificate some time later."""
    files, now, authorities = next_round({}), NOW, set()
    for _ in range(30 * 365 // 20):
        now += timedelta(days=20)
        before, files = files, next_round(files, now)
        assert is_believed(files["ca.crt"], before, now)  # a server that is late
        assert is_believed(before["ca.crt"], files, now)  # a client that is late
        authorities.add(read_certificates(files).authority.id)
        assert len(read_certificates(files).authorities) <= 2
    assert len(authorities) >= 4


def test_a_server_and_a_client_of_the_standard_library_take_them(tmp_path):
    files = next_round({}, datetime.now(UTC))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cadata=files["ca.crt"].decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    served = server.wrap_bio(to_server, to_client, server_side=True)
    asked = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for end in (asked, served, asked, served):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert asked.version() == "TLSv1.3"
