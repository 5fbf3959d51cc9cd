import asyncio
import base64
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.access.token_review import ServiceAccounts, claimed_account, cluster_review
from agentworld.errors import AccessError
from fakes import api_server
from fakes.clock import Clock

TRAINER = "system:serviceaccount:team-a:trainer"
TOKEN = api_server.token("team-a/trainer")


@pytest.fixture
def cluster(tmp_path):
    with api_server.running(tmp_path) as server:
        yield server


def review_account(cluster, token=TOKEN, audience="agentworld"):
    return asyncio.run(cluster_review(audience, cluster.kubeconfig)(token))


def test_a_review_sends_the_token_with_the_audience_and_returns_the_account(cluster):
    cluster.believes(TOKEN, TRAINER)
    assert review_account(cluster) == "team-a/trainer"
    (review,) = cluster.requests
    assert review["spec"] == {"token": TOKEN, "audiences": ["agentworld"]}


def test_a_token_that_the_cluster_rejects_authenticates_no_account(cluster):
    cluster.says[TOKEN] = {"authenticated": False, "error": "invalid bearer token"}
    assert review_account(cluster) is None


@pytest.mark.parametrize("audiences", [(), ("https://kubernetes.default.svc",), ("agentworld2",)])
def test_a_token_for_another_audience_authenticates_no_account(cluster, audiences):
    cluster.believes(TOKEN, TRAINER, audiences)
    assert review_account(cluster) is None


def test_a_review_without_audiences_authenticates_no_account(cluster):
    cluster.believes(TOKEN, TRAINER)
    del cluster.says[TOKEN]["audiences"]
    assert review_account(cluster) is None


@pytest.mark.parametrize(
    "user",
    ["anna", "system:node:n1", "", "system:serviceaccount:", "system:serviceaccount:team-a"],
)
def test_a_user_that_is_no_service_account_is_rejected(cluster, user):
    cluster.believes(TOKEN, user)
    assert review_account(cluster) is None


@pytest.mark.parametrize("response", [403, 500, b"no JSON", b"{}", b'{"status": []}'], ids=str)
def test_a_failed_review_raises_unavailable_without_quoting_the_token(cluster, response):
    cluster.says[TOKEN] = response
    with pytest.raises(AccessError, match="did not review the token") as error:
        review_account(cluster)
    assert (error.value.kind, error.value.retryable) == ("unavailable", True)
    assert TOKEN not in str(error.value)
    assert error.value.__cause__ is None


def test_an_unreachable_cluster_raises_unavailable(tmp_path):
    with api_server.running(tmp_path) as cluster:
        review = cluster_review(kubeconfig=cluster.kubeconfig)
    with pytest.raises(AccessError, match="did not review") as error:
        asyncio.run(review(TOKEN))
    assert error.value.kind == "unavailable"


def test_service_accounts_without_a_configured_cluster_raise_unavailable(tmp_path):
    (tmp_path / "kubeconfig").write_text("{}")
    with pytest.raises(
        AccessError, match="the access file has service accounts, and no cluster is configured"
    ) as error:
        cluster_review(kubeconfig=tmp_path / "kubeconfig")
    assert error.value.kind == "unavailable"


def test_no_log_contains_a_token(cluster, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("kubernetes.client.rest", "urllib3", "client"):
        caplog.set_level(logging.DEBUG, logger=name)
    cluster.believes(TOKEN, TRAINER)
    review_account(cluster)
    review_account(cluster, api_server.token("team-a/trainer", "b3RoZXI"))
    assert TOKEN not in caplog.text
    assert "b3RoZXI" not in caplog.text


class FakeReview:
    """A review that answers from a table, and records the tokens."""

    def __init__(self, **accounts):
        self.accounts = accounts
        self.tokens = []

    async def __call__(self, token):
        self.tokens.append(token)
        await asyncio.sleep(0)
        answer = self.accounts.get(token)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ask(accounts, *tokens):
    async def work():
        return await asyncio.gather(*map(accounts.account, tokens), return_exceptions=True)

    return asyncio.run(work())


def test_an_accepted_token_is_reviewed_once_a_minute():
    clock, review = Clock(), FakeReview(a="team-a/trainer")
    accounts = ServiceAccounts(review, clock)
    for seconds in (0, 30, 29.9):
        clock.now += seconds
        assert ask(accounts, "a") == ["team-a/trainer"]
    assert review.tokens == ["a"]
    clock.now += 0.2
    ask(accounts, "a")
    assert review.tokens == ["a", "a"]


def test_a_revoked_token_is_rejected_after_one_minute():
    clock, review = Clock(), FakeReview(a="team-a/trainer")
    accounts = ServiceAccounts(review, clock)
    ask(accounts, "a")
    review.accounts["a"] = None
    clock.now += 60
    assert ask(accounts, "a") == [None]


def test_a_rejection_is_cached_for_five_seconds():
    clock, review = Clock(), FakeReview()
    accounts = ServiceAccounts(review, clock)
    for seconds in (0, 2, 2.9):
        clock.now += seconds
        assert ask(accounts, "a") == [None]
    assert review.tokens == ["a"]
    review.accounts["a"] = "team-a/trainer"
    clock.now += 0.2
    assert ask(accounts, "a") == ["team-a/trainer"]


def test_concurrent_requests_with_one_token_cause_one_review():
    review = FakeReview(a="team-a/trainer", b="team-a/other")
    names = ask(ServiceAccounts(review, Clock()), *["a"] * 64, "b")
    assert names == [*["team-a/trainer"] * 64, "team-a/other"]
    assert sorted(review.tokens) == ["a", "b"]


def test_a_failed_review_fails_all_waiting_requests_and_is_not_cached():
    review = FakeReview(a=AccessError("gone", kind="unavailable"))
    accounts = ServiceAccounts(review, Clock())
    assert [str(failure) for failure in ask(accounts, "a", "a")] == ["gone", "gone"]
    review.accounts["a"] = "team-a/trainer"
    assert ask(accounts, "a") == ["team-a/trainer"]


def test_canceling_one_request_does_not_cancel_the_shared_review():
    review = FakeReview(a="team-a/trainer")
    accounts = ServiceAccounts(review, Clock())

    async def work():
        first = asyncio.create_task(accounts.account("a"))
        second = asyncio.create_task(accounts.account("a"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(work()) == "team-a/trainer"


def token_with_claims(value):
    return f"e30.{base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip('=')}.x"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (TOKEN, "team-a/trainer"),
        (token_with_claims({"sub": "system:serviceaccount:a:b"}), "a/b"),
        (token_with_claims({"sub": "anna"}), None),
        (token_with_claims({"sub": 7}), None),
        (token_with_claims({}), None),
        (token_with_claims(["sub"]), None),
        (token_with_claims({"sub": "system:serviceaccount:a:b"}) + ".x", None),
        ("e30." + base64.urlsafe_b64encode(b"[" * 9_000).decode() + ".x", None),
        ("e30.\xe9.x", None),
        ("..", None),
        ("", None),
    ],
    ids=range(11),
)
def test_the_claimed_account_is_read_from_the_token(token, expected):
    assert claimed_account(token) == expected


@given(st.text(st.characters()) | st.binary().map(lambda b: f"x.{base64.b64encode(b).decode()}.y"))
def test_a_malformed_token_claims_no_account_and_raises_no_error(token):
    assert claimed_account(token) is None
