import asyncio

import httpx
import pytest

from agentworld.client.credential import ClientSettings, authorisation
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError


def test_the_credential_variable_has_priority_over_the_credential_file(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("of-the-file\n")
    assert ClientSettings().load_credential() is None
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL_FILE", str(tmp_path / "token"))
    assert ClientSettings().load_credential() == "of-the-file"
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", "its-own")
    assert ClientSettings().load_credential() == "its-own"


def test_the_credential_file_is_read_for_each_request(tmp_path, monkeypatch):
    credentials = []

    def answer(request: httpx.Request) -> httpx.Response:
        credentials.append(request.headers.get("authorization"))
        return httpx.Response(404, json={"error": "not-found", "message": "no"})

    async def ask() -> None:
        token = tmp_path / "token"
        monkeypatch.setenv("AGENTWORLD_CREDENTIAL_FILE", str(token))
        transport = httpx.MockTransport(answer)
        load_credential = ClientSettings().load_credential
        client = SimulatorClient("http://there", credential=load_credential, transport=transport)
        for text in ("first", "second"):
            token.write_text(text)
            with pytest.raises(SimulatorError):
                await client.resume_run("r")
        await client.close()

    asyncio.run(ask())
    assert credentials == ["Bearer first", "Bearer second"]


def test_an_unreadable_credential_file_is_named_in_the_error(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL_FILE", str(tmp_path / "gone"))
    with pytest.raises(InputError, match="cannot be read from .*gone .FileNotFoundError."):
        ClientSettings().load_credential()


def test_a_credential_with_a_space_is_rejected_and_not_quoted():
    assert authorisation(None)() == {}
    with pytest.raises(InputError, match="holds a blank") as error:
        authorisation("a secret")
    assert "a secret" not in str(error.value)
