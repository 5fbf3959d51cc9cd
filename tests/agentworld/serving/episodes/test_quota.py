"""The limits of a tenant: exact with concurrent requests, and independent of other tenants."""

import asyncio
import json
import random

import httpx
import pytest
from starlette.testclient import TestClient

import make.access
from agentworld.access.limits import Limits
from agentworld.errors import AccessError
from agentworld.records.episode import new_name
from agentworld.serving.episodes.quota import Quota
from make import records
from make.access import bearer

OPENING = {"agent": "a", "starting_weights": records.digest("starting")}
CLOSING = {"final_weights": records.digest("final")}


class Limited:
    """A service with limits for each of its tenants."""

    def __init__(self, serve, folder):
        self.access = make.access.Checked(folder)
        self.served = serve(access=self.access)

    def ask(self, path, body=None, caller="acme-agent", **headers):
        return self.served.http("POST", path, body, authorization=bearer(caller), **headers)

    def at_once(self, path, body, num, **headers):
        """The responses to concurrent requests."""

        async def work():
            all_headers = {"authorization": bearer("acme-agent"), **headers}
            async with httpx.AsyncClient(
                transport=self.served.transport, base_url="http://simulator", headers=all_headers
            ) as client:
                return await asyncio.gather(*(client.post(path, json=body) for _ in range(num)))

        return asyncio.run(work())

    def run(self, caller="acme-agent"):
        return self.ask("/runs", OPENING, caller).json()["run"]["id"]

    def step(self, episode, action, number):
        return self.ask("/steps", {"episode": episode, "action": action, "step": number})


@pytest.fixture
def limited(serve, tmp_path):
    return Limited(serve, tmp_path)


def check_full(answer, reason):
    """Checks that the answer is a refusal with this reason and a retry time."""
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert (error["kind"], error["retryable"]) == ("limit", True)
    assert reason in error["message"]
    assert int(answer.headers["retry-after"]) >= error["retry_after_seconds"] > 0


@pytest.mark.compute
@pytest.mark.parametrize("limit", ["open_runs", "open_episodes"])
def test_64_concurrent_requests_open_exactly_as_many_as_the_limit_allows(limited, limit):
    run = limited.run()
    path, body = ("/runs", OPENING) if limit == "open_runs" else ("/episodes", {"run": run})
    cap, num_before = (7, 1) if limit == "open_runs" else (6, 0)
    limited.access.write(**{limit: cap})
    answers = limited.at_once(path, body, 64)
    assert sum(answer.is_success for answer in answers) == cap - num_before
    for answer in answers:
        if not answer.is_success:
            check_full(answer, f"has {cap} {limit.removeprefix('open_')} open and may have {cap}")
    ledger = limited.served.ledger
    num_open = (
        ledger.counts.num_open_runs if limit == "open_runs" else ledger.counts.num_open_episodes
    )
    assert num_open(tenant="acme") == cap


@pytest.mark.parametrize("limit", ["open_runs", "open_episodes"])
def test_a_repeated_request_at_the_limit_gets_the_first_response(limited, limit):
    run = limited.run()
    path, body = ("/runs", OPENING) if limit == "open_runs" else ("/episodes", {"run": run})
    limited.access.write(**{limit: 2 if limit == "open_runs" else 1})
    key = new_name()
    first = limited.ask(path, body, idempotency_key=key)
    assert first.is_success
    assert limited.ask(path, body, idempotency_key=key).json() == first.json()
    check_full(limited.ask(path, body), "close one first")
    check_full(limited.ask(path, body, idempotency_key=new_name()), "close one first")


@pytest.mark.compute
def test_64_concurrent_requests_with_one_idempotency_key_open_one_run(limited):
    limited.access.write(open_runs=1)
    answers = limited.at_once("/runs", OPENING, 64, **{"idempotency-key": new_name()})
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["run"]["id"] for answer in answers}) == 1


def test_an_idempotency_key_of_another_record_does_not_bypass_a_limit(limited):
    run, rival_run = limited.run(), limited.run("rival-agent")
    episode = limited.ask("/episodes", {"run": run}).json()["episode"]
    limited.access.write(open_runs=1, open_episodes=1)
    for key in (episode, rival_run):
        check_full(limited.ask("/runs", OPENING, idempotency_key=key), "runs open")
    for key in (run, rival_run):
        check_full(limited.ask("/episodes", {"run": run}, idempotency_key=key), "episodes open")


def test_closing_a_run_or_episode_frees_its_quota(limited):
    limited.access.write(open_runs=1, open_episodes=1)
    run = limited.run()
    episode = limited.ask("/episodes", {"run": run}).json()["episode"]
    check_full(limited.ask("/episodes", {"run": run}), "episodes open")
    assert limited.ask(f"/episodes/{episode}/close").is_success
    assert limited.ask("/episodes", {"run": run}).is_success
    check_full(limited.ask("/runs", OPENING), "runs open")
    assert limited.ask(f"/runs/{run}/close", CLOSING).is_success
    assert limited.ask("/episodes", {"run": limited.run()}).is_success


def test_forks_and_run_tokens_count_toward_the_limit_of_their_tenant(limited):
    limited.access.write(open_episodes=1)
    answer = limited.ask("/runs", OPENING).json()
    run = answer["run"]["id"]
    episode = limited.ask("/episodes", {"run": run}).json()["episode"]
    fork = {"run": run, "fork": {"episode": episode, "step": 0}}
    check_full(limited.ask("/episodes", fork), "episodes open")
    token = f"Bearer {answer['token']}"
    check_full(
        limited.served.http("POST", "/reset", {}, authorization=token), "tenant acme has 1 episodes"
    )


def test_a_tenant_at_its_limit_does_not_block_another_tenant(limited):
    limited.access.write(open_runs=1, steps_per_minute=1)
    limited.run()
    check_full(limited.ask("/runs", OPENING), "tenant acme")
    assert limited.ask("/runs", OPENING, "rival-agent").is_success


def test_a_raised_or_removed_limit_takes_effect(limited):
    limited.access.write(open_runs=1)
    limited.run()
    check_full(limited.ask("/runs", OPENING), "runs open")
    limited.access.write(open_runs=2)
    limited.run()
    limited.access.write()
    limited.run()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"steps_per_minute": 2}, "its steps of this minute"),
        ({"tokens_per_minute": 100}, "its tokens of this minute"),
        ({"bytes_per_minute": 20}, "its bytes of this minute"),
    ],
    ids=["steps", "tokens", "bytes"],
)
def test_a_step_beyond_a_per_minute_limit_is_refused_with_a_retry_time(limited, limits, reason):
    episode = limited.ask("/episodes", {"run": limited.run()}).json()["episode"]
    limited.access.write(**limits)
    answers = [limited.step(episode, "echo " + "x" * 10, number) for number in (1, 2, 3, 4)]
    first, *_, last = answers
    assert first.status_code == 200
    check_full(last, reason)
    refusals = [answer for answer in answers if not answer.is_success]
    assert len(limited.served.engine.requests) == len(answers) - len(refusals)
    limited.access.write()
    num_steps = len(limited.served.ledger.episode(episode).steps)
    assert limited.step(episode, "ls", num_steps + 1).status_code == 200


def test_a_limit_over_a_socket_is_an_error_frame_with_a_retry_time(limited):
    limited.access.write(steps_per_minute=1)
    run = limited.run()
    client = TestClient(limited.served.transport.app)
    headers = {"authorization": bearer("acme-agent")}
    with client.websocket_connect(f"/runs/{run}/ws", headers=headers) as socket:
        answers = []
        for kind, data in [("reset", {}), ("step", {"action": "ls"}), ("step", {"action": "ls"})]:
            socket.send_text(json.dumps({"type": kind, "data": data}))
            answers.append(socket.receive_json())
    assert [answer["type"] for answer in answers] == ["observation", "observation", "error"]
    problem = answers[2]["data"]
    assert (problem["code"], problem["retryable"]) == ("CAPACITY_REACHED", True)
    assert 0 < problem["retry_after_seconds"] <= 60


class CountingLedger:
    """Counts open episodes like a ledger, and limits them like an access."""

    def __init__(self, cap):
        self.most, self.num, self.highest, self.refused = cap, 0, 0, 0
        self.drawn = random.Random(cap)

    def limits(self, _tenant):
        return Limits(open_episodes=self.most)

    async def num_open(self, _kind, _tenant):
        await self.a_while()
        count = self.num
        await self.a_while()
        return count

    async def has(self, _kind, _name, _tenant):
        return False

    async def a_while(self):
        for _ in range(self.drawn.randrange(4)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("cap", [1, 2, 5, 40])
def test_concurrent_openings_never_exceed_the_limit_in_any_write_order(cap):
    ledger = CountingLedger(cap)
    quota = Quota(ledger, ledger)

    async def open_episode():
        try:
            async with quota.episode("acme", None):
                await ledger.a_while()
                ledger.num += 1
                ledger.highest = max(ledger.highest, ledger.num)
                await ledger.a_while()
        except AccessError:
            assert ledger.num == cap
            ledger.refused += 1

    async def work():
        await asyncio.gather(*(open_episode() for _ in range(64)))

    asyncio.run(work())
    assert (ledger.num, ledger.highest, ledger.refused) == (cap, cap, 64 - cap)


def test_a_failed_opening_uses_no_quota(limited):
    limited.access.write(open_episodes=1)
    run = limited.run()
    body = {"run": run, "seed": 7}
    for _ in range(3):
        assert limited.ask("/episodes", body).status_code == 422
    assert limited.ask("/episodes", {"run": run}).is_success
