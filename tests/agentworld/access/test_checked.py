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


class Checked:
    """An access with its file, and a cluster that authenticates tokens, or returns nothing."""

    def __init__(self, folder, text=FILE):
        self.path, self.clock, self.asked = folder / "access.yaml", Clock(), []
        self.path.write_text(text)
        self.access = CheckedAccess(
            ReloadedAccess(self.path, self.clock), TOKENS, lambda: self.review
        )

    async def review(self, token):
        self.asked.append(token)
        return "team-a/trainer" if token == JWT else None

    def write(self, text):
        self.path.write_text(text)
        self.clock.now += 2

    def caller(self, credential):
        return asyncio.run(self.access.caller(credential))

    def refused(self, credential):
        with pytest.raises(AccessError) as refused:
            self.caller(credential)
        return refused.value


def test_a_key_a_runs_token_and_a_service_account_are_known(tmp_path):
    checked = Checked(tmp_path, FILE.rstrip() + ACCOUNTS)
    names = [checked.caller(each).name for each in (KEY, TOKENS.token(RUN, "acme"), JWT)]
    assert names == ["acme/ci", f"run {RUN}", "team-a/trainer"]
    assert {checked.caller(each).tenant for each in (KEY, JWT)} == {"acme"}


@pytest.mark.parametrize(
    "credential",
    [None, "", "x", KEY[:-1], KEY + " ", KEY.lower(), key_digest(KEY), "awk_", JWT[:-1], "a.b.c"],
    ids=range(10),
)
def test_whoever_else_comes_is_nobody_and_hears_the_same(tmp_path, credential):
    checked = Checked(tmp_path, FILE.rstrip() + ACCOUNTS)
    refused = checked.refused(credential)
    assert refused.kind == "unauthorised"
    assert str(refused) == str(checked.refused("another"))


def test_a_runs_token_is_nothing_once_its_tenant_is_taken_out(tmp_path):
    checked = Checked(tmp_path)
    token = TOKENS.token(RUN, "acme")
    assert checked.caller(token).run == RUN
    checked.write("tenants: {other: {}}")
    assert checked.refused(token).kind == "unauthorised"
    checked.write(FILE)
    assert checked.caller(token).run == RUN


def test_a_service_account_is_nothing_once_it_is_taken_out(tmp_path):
    checked = Checked(tmp_path, FILE.rstrip() + ACCOUNTS)
    assert checked.caller(JWT).tenant == "acme"
    checked.write(FILE)
    assert checked.refused(JWT).kind == "unauthorised"


def test_limits_are_those_of_the_file_as_it_is_now(tmp_path):
    checked = Checked(tmp_path)
    assert checked.access.limits("acme").open_runs == 2
    checked.write(FILE.replace("2}", "3}"))
    assert checked.access.limits("acme").open_runs == 3
    assert checked.access.limits("gone").open_runs is None


@pytest.mark.parametrize(
    "credential",
    ["a.b.c", "...", api_server.token("team-b/trainer"), api_server.token("team-a/other"), KEY],
    ids=range(5),
)
def test_the_cluster_is_asked_about_nothing_but_the_named_accounts(tmp_path, credential):
    checked = Checked(tmp_path, FILE.rstrip() + ACCOUNTS)
    if credential != KEY:
        checked.refused(credential)
    assert checked.asked == []


def test_where_no_account_is_named_no_cluster_is_needed(tmp_path):
    checked = Checked(tmp_path)
    assert checked.refused(JWT).kind == "unauthorised"
    assert checked.asked == []


def test_a_service_that_can_ask_no_cluster_says_so_when_it_starts(tmp_path):
    (tmp_path / "access.yaml").write_text(FILE.rstrip() + ACCOUNTS)
    (tmp_path / "kubeconfig").write_text("{}")
    with pytest.raises(AccessError, match="no cluster is configured"):
        CheckedAccess(
            ReloadedAccess(tmp_path / "access.yaml"),
            TOKENS,
            lambda: cluster_review(kubeconfig=tmp_path / "kubeconfig"),
        )


def test_a_token_that_says_it_is_a_named_accounts_is_believed_to_the_cluster_alone(tmp_path):
    checked = Checked(tmp_path, FILE.rstrip() + ACCOUNTS)
    forged = api_server.token("team-a/trainer", "Zm9yZ2Vk")
    assert checked.refused(forged).kind == "unauthorised"
    assert checked.asked == [forged]


def test_locally_everybody_is_let_in_and_a_runs_token_still_opens_its_run_alone():
    access = LocalAccess(TOKENS)
    for credential in (None, "", "x", KEY):
        caller = asyncio.run(access.caller(credential))
        assert (caller.tenant, caller.run) == ("local", None)
        assert caller.roles == {"agent", "operator", "auditor"}
    token = access.run_token(RUN, "local")
    assert asyncio.run(access.caller(token)).run == RUN
    assert access.limits("local").open_runs is None


def test_no_secret_is_in_what_stands_for_an_access_in_a_log(tmp_path):
    checked = Checked(tmp_path)
    told = repr((checked.access, TOKENS, checked.caller(KEY), checked.access._file.index))
    assert KEY not in told
    assert "secret" not in told
