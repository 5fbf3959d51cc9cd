import base64

import pytest
from starlette.testclient import TestClient

import make.access
import make.console
from agentworld.errors import InputError
from agentworld_console.access import Callers
from agentworld_console.app import create_app

SECRET = "a secret that a proxy and the console share"


def proxy_headers(secret=SECRET, tenant="acme", user="jo", roles="agent"):
    return {
        "x-agentworld-proxy-secret": secret,
        "x-agentworld-tenant": tenant,
        "x-agentworld-user": user,
        "x-agentworld-roles": roles,
    }


@pytest.fixture(scope="module")
def proxied_client(content):
    """A console that only a proxy reaches."""
    return make.console.client(create_app(content.library, Callers(None, proxy_secret=SECRET)))


@pytest.mark.compute
def test_every_page_without_a_credential_returns_401(app, content):
    anonymous = make.console.client(app)
    for path in content.pages.values():
        answer = anonymous.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert "shell-agent" not in answer.text


def test_an_unknown_key_is_rejected(app):
    assert make.console.client(app, "acme-nobody").get("/").status_code == 401


def test_a_key_is_accepted_as_a_basic_auth_password(app):
    credentials = base64.b64encode(f"me:{make.access.key('acme-agent')}".encode()).decode()
    answer = make.console.client(app).get("/", headers={"authorization": f"Basic {credentials}"})
    assert (answer.status_code, "acme/agent" in answer.text) == (200, True)


def test_a_caller_with_only_the_operator_role_reads_no_page(app, content):
    operator = make.console.client(app, "acme-operator")
    assert {operator.get(path).status_code for path in content.pages.values()} == {403}


def test_the_health_check_needs_no_credential(app):
    assert make.console.client(app).get("/healthz").text == "ok"


def test_a_run_token_reads_only_its_run(app, content):
    token = make.access.TOKENS.token(content.run, "acme")
    client = TestClient(app, headers={"authorization": f"Bearer {token}"})
    assert client.get(f"/runs/{content.run}").status_code == 200
    assert client.get(f"/runs/{content.open_run}").status_code == 404
    assert content.open_run not in client.get("/runs.csv").text
    assert str(content.rival) not in client.get("/agents").text
    assert client.get("/simulators").status_code == 200


def test_the_proxy_headers_identify_the_caller(proxied_client, content):
    answer = proxied_client.get(f"/runs/{content.run}", headers=proxy_headers())
    assert (answer.status_code, "acme/jo" in answer.text) == (200, True)
    assert (
        proxied_client.get(f"/runs/{content.rival_run}", headers=proxy_headers()).status_code == 404
    )


def test_an_auditor_named_by_the_proxy_sees_all_tenants(proxied_client, content):
    auditor = proxy_headers(tenant="office", roles="auditor, unknown")
    assert proxied_client.get(f"/runs/{content.rival_run}", headers=auditor).status_code == 200


@pytest.mark.parametrize("secret", ["", "wrong", SECRET + "x", SECRET[:-1], "\u00e4" * 40])
def test_proxy_headers_without_the_right_secret_are_rejected(proxied_client, secret):
    headers = {name: value.encode() for name, value in proxy_headers(secret).items()}
    assert proxied_client.get("/", headers=headers).status_code == 401


def test_a_repeated_proxy_secret_header_is_rejected(proxied_client):
    headers = [*proxy_headers().items(), ("x-agentworld-proxy-secret", SECRET)]
    assert proxied_client.get("/", headers=headers).status_code == 401


@pytest.mark.parametrize("fields", [{"tenant": ""}, {"tenant": "../office"}, {"user": ""}])
def test_proxy_headers_without_a_valid_tenant_and_user_are_refused(proxied_client, fields):
    assert proxied_client.get("/", headers=proxy_headers(**fields)).status_code == 403


@pytest.mark.parametrize("roles", ["", "operator", "admin", "AUDITOR"])
def test_proxy_headers_without_a_reading_role_are_refused(proxied_client, roles):
    assert proxied_client.get("/", headers=proxy_headers(roles=roles)).status_code == 403


def test_proxy_headers_are_rejected_where_no_secret_is_set(app):
    anonymous = make.console.client(app)
    assert anonymous.get("/", headers=proxy_headers(secret="")).status_code == 401
    assert anonymous.get("/", headers=proxy_headers()).status_code == 401


def test_a_key_works_beside_a_proxy(content, tmp_path):
    console = make.console.app(content.library, tmp_path, proxy_secret=SECRET)
    assert make.console.client(console, "acme-agent").get("/").status_code == 200
    assert make.console.client(console).get("/", headers=proxy_headers()).status_code == 200


@pytest.mark.parametrize(
    ("access", "secret", "host", "message"),
    [
        (None, "", "127.0.0.1", "the console has no access control yet"),
        (None, "short", "127.0.0.1", "has 5 characters; give it at least 32"),
        ("local", SECRET, "127.0.0.1", "remove one of them"),
        ("local", "", "0.0.0.0", "the host is 0.0.0.0"),
    ],
)
def test_missing_weak_or_conflicting_access_settings_are_refused(
    tmp_path, access, secret, host, message
):
    with pytest.raises(InputError, match=message):
        Callers.of(access, secret, tmp_path, host)


def test_opening_local_access_writes_no_file(tmp_path):
    Callers.of("local", "", tmp_path, "127.0.0.1")
    assert list(tmp_path.iterdir()) == []


def test_local_access_refuses_foreign_hosts_and_origins(content, tmp_path):
    callers = Callers.of("local", "", tmp_path, "127.0.0.1")
    browser = TestClient(create_app(content.library, callers), base_url="http://127.0.0.1")
    assert browser.get("/").status_code == 200
    assert browser.get("/", headers={"host": "evil.example"}).status_code == 403
    assert browser.get("/", headers={"origin": "https://evil.example"}).status_code == 403
