import asyncio

import pytest

from agentworld.access.checked import CheckedAccess, LocalAccess
from agentworld.access.key import key_digest, new_key
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens
from agentworld.access.token_review import cluster_review
from agentworld.errors import AccessError
from agentworld.records.episode import new_name
from fakes import api_server
from fakes.clock import Clock

KEY = new_key()
RUN = new_name()
TOKENS = RunTokens(b"secret")
FILE = f"""
tenants:
  acme:
    keys: {{ci: {{sha256: {key_digest(KEY)}, roles: [agent]}}}}
    limits: {{open_runs: 2}}
"""
ACCOUNTS = "\n    service_accounts: {team-a/trainer: [agent]}\n"
JWT = api_server.token("team-a/trainer")


class Scene:
    """An access with its file, and a cluster that authenticates tokens, or returns nothing."""

    def __init__(self, folder, text=FILE):
        self.path, self.clock, self.tokens = folder / "access.yaml", Clock(), []
        self.path.write_text(text)
        self.access = CheckedAccess(
            ReloadedAccess(self.path, self.clock), TOKENS, lambda: self.review
        )

    async def review(self, token):
        self.tokens.append(token)
        return "team-a/trainer" if token == JWT else None

    def write(self, text):
        self.path.write_text(text)
        self.clock.now += 2

    def caller(self, credential):
        return asyncio.run(self.access.caller(credential))

    def refused(self, credential):
        with pytest.raises(AccessError) as error:
            self.caller(credential)
        return error.value


def test_a_key_a_run_token_and_a_service_account_authenticate_their_callers(tmp_path):
    scene = Scene(tmp_path, FILE.rstrip() + ACCOUNTS)
    names = [scene.caller(credential).name for credential in (KEY, TOKENS.token(RUN, "acme"), JWT)]
    assert names == ["acme/ci", f"run {RUN}", "team-a/trainer"]
    assert {scene.caller(credential).tenant for credential in (KEY, JWT)} == {"acme"}


@pytest.mark.parametrize(
    "credential",
    [None, "", "x", KEY[:-1], KEY + " ", KEY.lower(), key_digest(KEY), "awk_", JWT[:-1], "a.b.c"],
    ids=range(10),
)
def test_every_invalid_credential_is_rejected_with_the_same_message(tmp_path, credential):
    scene = Scene(tmp_path, FILE.rstrip() + ACCOUNTS)
    error = scene.refused(credential)
    assert error.kind == "unauthorised"
    assert str(error) == str(scene.refused("another"))


def test_a_run_token_is_rejected_while_its_tenant_is_missing_from_the_file(tmp_path):
    scene = Scene(tmp_path)
    token = TOKENS.token(RUN, "acme")
    assert scene.caller(token).run == RUN
    scene.write("tenants: {other: {}}")
    assert scene.refused(token).kind == "unauthorised"
    scene.write(FILE)
    assert scene.caller(token).run == RUN


def test_a_service_account_removed_from_the_file_is_rejected(tmp_path):
    scene = Scene(tmp_path, FILE.rstrip() + ACCOUNTS)
    assert scene.caller(JWT).tenant == "acme"
    scene.write(FILE)
    assert scene.refused(JWT).kind == "unauthorised"


def test_limits_follow_changes_of_the_access_file(tmp_path):
    scene = Scene(tmp_path)
    assert scene.access.limits("acme").open_runs == 2
    scene.write(FILE.replace("2}", "3}"))
    assert scene.access.limits("acme").open_runs == 3
    assert scene.access.limits("gone").open_runs is None


@pytest.mark.parametrize(
    "credential",
    ["a.b.c", "...", api_server.token("team-b/trainer"), api_server.token("team-a/other"), KEY],
    ids=range(5),
)
def test_only_tokens_that_claim_a_listed_account_are_sent_to_the_cluster(tmp_path, credential):
    scene = Scene(tmp_path, FILE.rstrip() + ACCOUNTS)
    if credential != KEY:
        scene.refused(credential)
    assert scene.tokens == []


def test_without_service_accounts_no_cluster_is_needed(tmp_path):
    scene = Scene(tmp_path)
    assert scene.refused(JWT).kind == "unauthorised"
    assert scene.tokens == []


def test_service_accounts_without_a_cluster_are_an_error_at_startup(tmp_path):
    (tmp_path / "access.yaml").write_text(FILE.rstrip() + ACCOUNTS)
    (tmp_path / "kubeconfig").write_text("{}")
    with pytest.raises(AccessError, match="no cluster is configured"):
        CheckedAccess(
            ReloadedAccess(tmp_path / "access.yaml"),
            TOKENS,
            lambda: cluster_review(kubeconfig=tmp_path / "kubeconfig"),
        )


def test_a_forged_token_for_a_listed_account_is_rejected_by_the_cluster(tmp_path):
    scene = Scene(tmp_path, FILE.rstrip() + ACCOUNTS)
    forged_token = api_server.token("team-a/trainer", "Zm9yZ2Vk")
    assert scene.refused(forged_token).kind == "unauthorised"
    assert scene.tokens == [forged_token]


def test_local_access_accepts_any_credential_and_limits_a_run_token_to_its_run():
    access = LocalAccess(TOKENS)
    for credential in (None, "", "x", KEY):
        caller = asyncio.run(access.caller(credential))
        assert (caller.tenant, caller.run) == ("local", None)
        assert caller.roles == {"agent", "operator", "auditor"}
    token = access.run_token(RUN, "local")
    assert asyncio.run(access.caller(token)).run == RUN
    assert access.limits("local").open_runs is None


def test_the_repr_of_an_access_contains_no_secret(tmp_path):
    scene = Scene(tmp_path)
    text = repr((scene.access, TOKENS, scene.caller(KEY), scene.access._file.index))
    assert KEY not in text
    assert "secret" not in text
