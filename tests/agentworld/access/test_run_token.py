import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.access.run_token import RunTokens
from agentworld.records.episode import new_name

SECRET = bytes(range(32))
TOKENS = RunTokens(SECRET)
RUN = new_name()
TOKEN = TOKENS.token(RUN, "acme")


def test_a_run_token_gives_the_agent_role_for_its_run_and_tenant():
    caller = TOKENS.caller(TOKEN)
    assert (caller.tenant, caller.run, caller.roles) == ("acme", RUN, {"agent"})


def test_replicas_with_the_same_secret_issue_and_accept_the_same_token():
    assert RunTokens(SECRET).token(RUN, "acme") == TOKEN
    assert RunTokens(SECRET).caller(TOKEN) == TOKENS.caller(TOKEN)


def test_a_token_of_another_secret_is_rejected():
    assert RunTokens(b"another").caller(TOKEN) is None


@given(st.integers(0, len(TOKEN) - 1), st.characters())
def test_a_token_with_a_changed_character_is_rejected(place, character):
    token = TOKEN[:place] + character + TOKEN[place + 1 :]
    assert (TOKENS.caller(token) is None) == (token != TOKEN)


@given(
    st.sampled_from([new_name(), RUN, "0" * 32, "f" * 32]),
    st.from_regex("[a-z0-9-]{1,63}", fullmatch=True),
)
def test_a_token_with_a_changed_run_or_tenant_is_rejected(run, tenant):
    _, _, _, signature = TOKEN.split("_")
    token = f"awr_{run}_{tenant}_{signature}"
    assert (TOKENS.caller(token) is None) == (token != TOKEN)


@given(st.text(st.characters()) | st.text("awr_0123456789abcdef-\n\x00"))
def test_random_text_and_tokens_with_added_text_are_rejected(text):
    assert TOKENS.caller(text) is None
    assert TOKENS.caller(TOKEN + text) == (None if text else TOKENS.caller(TOKEN))
    assert TOKENS.caller(text + TOKEN) == (None if text else TOKENS.caller(TOKEN))


@pytest.mark.parametrize(
    "token",
    [TOKEN.upper(), TOKEN + "\n", " " + TOKEN, TOKEN[:-1], TOKEN.replace("_", "-"), "awr___", ""],
    ids=range(7),
)
def test_a_nearly_correct_token_is_rejected(token):
    assert TOKENS.caller(token) is None


def test_moving_the_boundary_between_run_and_tenant_changes_the_hmac():
    signatures = {TOKENS.token(run, tenant)[-64:] for run, tenant in [("ab", "c"), ("a", "bc")]}
    assert len(signatures) == 2


@given(st.from_regex("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True))
def test_a_token_of_any_tenant_is_safe_in_a_url(tenant):
    token = TOKENS.token(RUN, tenant)
    assert set(token) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
    assert TOKENS.caller(token).tenant == tenant
