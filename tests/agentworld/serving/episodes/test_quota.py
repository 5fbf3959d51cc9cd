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

    def ask(self, path, body=None, who="acme-agent", **headers):
        return self.served.http("POST", path, body, authorization=bearer(who), **headers)

    def at_once(self, path, body, num, **headers):
        """The responses to concurrent requests."""

        async def work():
            told = {"authorization": bearer("acme-agent"), **headers}
            async with httpx.AsyncClient(
                transport=self.served.transport, base_url="http://simulator", headers=told
            ) as client:
                return await asyncio.gather(*(client.post(path, json=body) for _ in range(num)))

        return asyncio.run(work())

    def run(self, who="acme-agent"):
        return self.ask("/runs", OPENING, who).json()["run"]["id"]

    def step(self, episode, action, number):
        return self.ask("/steps", {"episode": episode, "action": action, "step": number})


@pytest.fixture
def limited(serve, tmp_path):
    return Limited(serve, tmp_path)


def check_full(answer, words):
    """Checks that it is a refusal with a reason and a retry time."""
    assert answer.status_code == 429
    told = answer.json()["error"]
    assert (told["kind"], told["retryable"]) == ("limit", True)
    assert words in told["message"]
    assert int(answer.headers["retry-after"]) >= told["retry_after_seconds"] > 0


@pytest.mark.compute
@pytest.mark.parametrize("limit", ["open_runs", "open_episodes"])
def test_64_concurrent_requests_open_exactly_as_many_as_the_limit_allows(limited, limit):
    run = limited.run()
    path, body = ("/runs", OPENING) if limit == "open_runs" else ("/episodes", {"run": run})
    most, already = (7, 1) if limit == "open_runs" else (6, 0)
    limited.access.write(**{limit: most})
    answers = limited.at_once(path, body, 64)
    assert sum(answer.is_success for answer in answers) == most - already
    for answer in answers:
        if not answer.is_success:
            check_full(answer, f"has {most} {limit.removeprefix('open_')} open and may have {most}")
    ledger = limited.served.ledger
    num_open = (
        ledger.counts.num_open_runs if limit == "open_runs" else ledger.counts.num_open_episodes
    )
    assert num_open(tenant="acme") == most


@pytest.mark.parametrize("limit", ["open_runs", "open_episodes"])
def test_a_repeated_request_at_the_limit_gets_the_first_response(limited, limit):
    run = limited.run()
    path, body = ("/runs", OPENING) if limit == "open_runs" else ("/episodes", {"run": run})
    limited.access.write(**{limit: 2 if limit == "open_runs" else 1})
    name = new_name()
    first = limited.ask(path, body, idempotency_key=name)
    assert first.is_success
    assert limited.ask(path, body, idempotency_key=name).json() == first.json()
    check_full(limited.ask(path, body), "close one first")
    check_full(limited.ask(path, body, idempotency_key=new_name()), "close one first")


@pytest.mark.compute
def test_64_concurrent_requests_with_one_idempotency_key_open_one_run(limited):
    limited.access.write(open_runs=1)
    answers = limited.at_once("/runs", OPENING, 64, **{"idempotency-key": new_name()})
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["run"]["id"] for answer in answers}) == 1


def test_an_idempotency_key_of_another_record_does_not_bypass_a_limit(limited):
    run, theirs = limited.run(), limited.run("rival-agent")
    episode = limited.ask("/episodes", {"run": run}).json()["episode"]
    limited.access.write(open_runs=1, open_episodes=1)
    for name in (episode, theirs):
        check_full(limited.ask("/runs", OPENING, idempotency_key=name), "runs open")
    for name in (run, theirs):
        check_full(limited.ask("/episodes", {"run": run}, idempotency_key=name), "episodes open")


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
    opened = limited.ask("/runs", OPENING).json()
    run = opened["run"]["id"]
    episode = limited.ask("/episodes", {"run": run}).json()["episode"]
    fork = {"run": run, "fork": {"episode": episode, "step": 0}}
    check_full(limited.ask("/episodes", fork), "episodes open")
    token = f"Bearer {opened['token']}"
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
    ("limits", "words"),
    [
        ({"steps_per_minute": 2}, "its steps of this minute"),
        ({"tokens_per_minute": 100}, "its tokens of this minute"),
        ({"bytes_per_minute": 20}, "its bytes of this minute"),
    ],
    ids=["steps", "tokens", "bytes"],
)
def test_a_step_beyond_a_per_minute_limit_is_refused_with_a_retry_time(limited, limits, words):
    episode = limited.ask("/episodes", {"run": limited.run()}).json()["episode"]
    limited.access.write(**limits)
    answers = [limited.step(episode, "echo " + "x" * 10, number) for number in (1, 2, 3, 4)]
    first, *_, last = answers
    assert first.status_code == 200
    check_full(last, words)
    refused = [answer for answer in answers if not answer.is_success]
    assert len(limited.served.engine.requests) == len(answers) - len(refused)
    limited.access.write()
    taken = len(limited.served.ledger.episode(episode).steps)
    assert limited.step(episode, "ls", taken + 1).status_code == 200


def test_a_limit_over_a_socket_is_an_error_frame_with_a_retry_time(limited):
    limited.access.write(steps_per_minute=1)
    run = limited.run()
    client = TestClient(limited.served.transport.app)
    told = {"authorization": bearer("acme-agent")}
    with client.websocket_connect(f"/runs/{run}/ws", headers=told) as socket:
        answers = []
        for kind, data in [("reset", {}), ("step", {"action": "ls"}), ("step", {"action": "ls"})]:
            socket.send_text(json.dumps({"type": kind, "data": data}))
            answers.append(socket.receive_json())
    assert [answer["type"] for answer in answers] == ["observation", "observation", "error"]
    problem = answers[2]["data"]
    assert (problem["code"], problem["retryable"]) == ("CAPACITY_REACHED", True)
    assert 0 < problem["retry_after_seconds"] <= 60


class Books:
    """Counts as a ledger does, with an access that has one limit."""

    def __init__(self, most):
        self.most, self.num, self.highest, self.refused = most, 0, 0, 0
        self.drawn = random.Random(most)

    def limits(self, _tenant):
        return Limits(open_episodes=self.most)

    async def num_open(self, _kind, _tenant):
        await self.a_while()
        counted = self.num
        await self.a_while()
        return counted

    async def has(self, _kind, _name, _tenant):
        return False

    async def a_while(self):
        for _ in range(self.drawn.randrange(4)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_concurrent_openings_never_exceed_the_limit_in_any_write_order(most):
    books = Books(most)
    quota = Quota(books, books)

    async def come():
        try:
            async with quota.episode("acme", None):
                await books.a_while()
                books.num += 1
                books.highest = max(books.highest, books.num)
                await books.a_while()
        except AccessError:
            assert books.num == most
            books.refused += 1

    async def work():
        await asyncio.gather(*(come() for _ in range(64)))

    asyncio.run(work())
    assert (books.num, books.highest, books.refused) == (most, most, 64 - most)


def test_a_failed_opening_uses_no_quota(limited):
    limited.access.write(open_episodes=1)
    run = limited.run()
    wrong = {"run": run, "seed": 7}
    for _ in range(3):
        assert limited.ask("/episodes", wrong).status_code == 422
    assert limited.ask("/episodes", {"run": run}).is_success
