import asyncio
import json
import uuid

import httpx
import pytest

from agentworld.audit.checks.run import Evidence, verify_run
from agentworld.engine.base import Completion
from agentworld.errors import EngineError
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, ensure_signer, load_trusted
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.storage.objects import WriteOnce
from make import records
from make.ledger import closing

OPENING = {"agent": "shell-agent", "starting_weights": records.digest("starting")}
SIMULATOR = records.manifest().digest
TASK = records.task().model_dump(mode="json")


def problem(response):
    return response.status_code, response.json()["error"]["kind"]


def test_nul_and_lone_surrogates_pass_through_a_step_unchanged(serve):
    service = serve()
    episode = service.reset()
    action = "echo nul \0, half \ud83d of a pair"
    body = json.dumps({"episode": episode, "action": action, "step": 1}).encode()
    answer = json.loads(service.send("POST", "/steps", body).content)
    assert answer["observation"] == action.removeprefix("echo ") + "\n[0] ~"
    assert service.ledger.episode(episode).steps[0].action == action


def test_a_fork_continues_from_its_step_without_changing_its_source(serve):
    service = serve()
    run = service.run()
    parent = service.reset(run, initial_state="rimo.txt: besa", turn_limit=5)
    for number, action in enumerate(("echo a", "echo b"), 1):
        service.step(parent, action, number)
    fork = service.reset(run, fork={"episode": parent, "step": 1})
    assert service.step(fork, "echo c", 2).json()["observation"] == "c\n[0] ~"
    contents = [message["content"] for message in service.engine.requests[-1].messages[1:]]
    assert contents == ["echo a", "a\n[0] ~", "echo c"]
    assert service.ledger.episode(fork).intact
    assert service.ledger.episode(fork).opening.start == "rimo.txt: besa"
    assert [step.action for step in service.ledger.episode(parent).steps] == ["echo a", "echo b"]


def begin(service, name, **opening):
    return service.http("POST", "/episodes", opening, idempotency_key=name)


def test_a_repeated_reset_begins_one_episode(serve):
    service, second = serve(), serve()
    run, name = service.run(), uuid.uuid4().hex
    first = begin(service, name, run=run, turn_limit=5)
    assert first.json()["episode"] == name
    service.step(name, "echo a", 1)
    for replica in (service, second):
        assert begin(replica, name, run=run, turn_limit=5).json() == first.json()
    assert service.step(name, "echo b", 2).json()["observation"] == "b\n[0] ~"
    assert service.ledger.run(run).num_episodes == 1


def test_a_repeated_fork_request_gets_the_first_response(serve):
    service = serve()
    run, name = service.run(), uuid.uuid4().hex
    source = {"episode": service.reset(run), "step": 1}
    service.step(source["episode"], "echo a", 1)
    first = begin(service, name, run=run, fork=source)
    service.step(name, "echo b", 2)
    assert begin(service, name, run=run, fork=source).json() == first.json()
    assert first.json()["step"] == 1


def test_another_opening_under_a_used_idempotency_key_is_refused(serve):
    service = serve()
    run, name = service.run(), uuid.uuid4().hex
    begin(service, name, run=run)
    assert problem(begin(service, name, run=run, turn_limit=2)) == (409, "conflict")
    assert problem(begin(service, name, run=service.run())) == (409, "conflict")
    assert problem(begin(service, "../name", run=run)) == (422, "input")


def play(service, episode, *actions):
    """The responses to the actions, without the episode's name."""
    answers = [service.step(episode, action, n).json() for n, action in enumerate(actions, 1)]
    return [{**answer, "episode": ""} for answer in answers]


def test_a_replay_repeats_the_recorded_answers_without_calling_the_engine(serve):
    service = serve()
    run = service.run()
    source = service.reset(run, task=TASK)
    first = [
        service.step(source, action, n).json() for n, action in enumerate(("ls", "echo besa"), 1)
    ]
    num_requests = len(service.engine.requests)
    replay = service.reset(run, replay={"episode": source, "step": 2})
    second = [
        service.step(replay, action, n).json() for n, action in enumerate(("ls", "echo besa"), 1)
    ]
    fields = ("observation", "reward", "done", "truncated")
    assert [[a[name] for name in fields] for a in second] == [
        [a[name] for name in fields] for a in first
    ]
    assert len(service.engine.requests) == num_requests


def test_a_replay_of_another_action_is_refused(serve):
    service = serve()
    run = service.run()
    source = service.reset(run)
    service.step(source, "ls", 1)
    replay = service.reset(run, replay={"episode": source, "step": 1})
    assert problem(service.step(replay, "pwd", 1)) == (409, "conflict")
    assert problem(service.step(replay, "ls", 2)) == (409, "conflict")


def test_a_fork_with_its_own_initial_state_is_refused(serve):
    service = serve()
    run = service.run()
    body = {
        "run": run,
        "fork": {"episode": service.reset(run), "step": 0},
        "initial_state": "b.txt",
    }
    answer = service.http("POST", "/episodes", body)
    assert problem(answer) == (422, "input")
    assert "takes initial_state from it" in answer.json()["error"]["message"]


def test_an_unseeded_simulator_refuses_a_seed(serve):
    service = serve()
    answer = service.http("POST", "/episodes", {"run": service.run(), "seed": 7})
    assert problem(answer) == (422, "input")
    assert "cannot be used" in answer.json()["error"]["message"]


def test_a_run_resolves_its_simulator_alias_only_once(serve):
    service = serve()
    service.ledger.aliases.set("stable", SIMULATOR, "ada")
    body, key = {**OPENING, "simulator": "stable"}, {"idempotency-key": "1" * 32}
    run = service.http("POST", "/runs", body, **key).json()["run"]
    service.ledger.aliases.set("stable", records.digest("next"), "ada")
    assert run["simulator"] == SIMULATOR
    assert service.step(service.reset(run["id"]), "ls", 1).status_code == 200
    assert (run["id"], run["opening"]["simulator"]) == ("1" * 32, SIMULATOR)
    assert problem(service.http("POST", "/runs", body)) == (409, "conflict")
    assert service.http("POST", "/runs", body, **key).json()["run"]["id"] == run["id"]


def test_a_closed_episode_refuses_new_steps_and_repeats_its_last_answer(serve):
    service = serve()
    episode = service.reset()
    first = service.step(episode, "ls", 1)
    for _ in range(2):
        assert service.http("POST", f"/episodes/{episode}/close").status_code == 204
    assert service.step(episode, "ls", 1).content == first.content
    assert problem(service.step(episode, "ls", 2)) == (409, "conflict")
    assert service.ledger.episode(episode).closed == "closed"


def test_a_step_that_was_erased_is_not_repeated_from_memory(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    service.step(episode, "ls", 1)
    service.ledger.close_run(run, closing())  # as another replica does
    service.ledger.erase_texts(episode)
    for action in ("ls", "pwd"):
        answer = service.step(episode, action, 1)
        assert problem(answer) == (409, "conflict")
        assert "erased" in answer.text


def test_a_step_after_the_end_of_its_run_does_not_reach_the_engine(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    service.step(episode, "ls", 1)
    service.http("POST", f"/runs/{run}/close", {"final_weights": records.digest("final")})
    assert problem(service.step(episode, "pwd", 2)) == (409, "conflict")
    assert len(service.engine.requests) == 1


@pytest.mark.parametrize("change", ["close", "step"])
def test_closing_an_episode_succeeds_despite_a_concurrent_change_by_another_replica(serve, change):
    second = serve()

    class RacingLedger(Ledger):
        def episode(self, episode):
            """The episode before the other replica continued or closed it."""
            record = super().episode(episode)
            if change == "close":
                second.http("POST", f"/episodes/{episode}/close")
            else:
                second.step(episode, "ls", 1)
            return record

    first, episode = serve(ledger=RacingLedger), second.reset()
    assert first.http("POST", f"/episodes/{episode}/close").status_code == 204
    assert second.ledger.episode(episode).closed == "closed"
    assert len(second.ledger.episode(episode).steps) == (change == "step")


def test_replicas_alternately_continue_the_same_episode(serve):
    replicas = serve(), serve()
    episode = replicas[0].reset()
    for number in range(1, 7):
        answer = replicas[number % 2].step(episode, f"echo {number}", number)
        assert answer.json()["observation"] == f"{number}\n[0] ~"
    assert actions_of(replicas[0], episode) == [f"echo {number}" for number in range(1, 7)]
    assert len(replicas[0].engine.requests[-1].messages) == 12


def test_a_replica_returns_the_answer_that_another_replica_recorded_first(serve):
    second = serve()

    async def answer_late(messages):
        """The other replica takes a step while the first one waits for its engine."""
        number = len(messages) // 2
        async with httpx.AsyncClient(transport=second.transport, base_url="http://s") as client:
            body = {"episode": episode, "action": "echo b", "step": number}
            await client.post("/steps", json=body)
        return "a\n[0] ~"

    first = serve(answer_late)
    episode = first.reset()
    second.step(episode, "echo b", 1)
    assert first.step(episode, "echo b", 2).json()["observation"] == "b\n[0] ~"
    second.step(episode, "echo b", 3)
    assert first.step(episode, "echo b", 4).json()["observation"] == "b\n[0] ~"


def actions_of(service, episode):
    return [step.action for step in service.ledger.episode(episode).steps]


def test_a_capacity_refusal_has_the_retry_time_of_the_engine(serve):
    error = EngineError("full", kind="capacity", retry_after_seconds=1.2)
    answer = serve(lambda messages: error)
    answer = answer.step(answer.reset(), "ls", 1)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
    assert answer.json()["error"]["retry_after_seconds"] == 1.2


@pytest.mark.parametrize(("kind", "status"), [("engine", 503), ("slow", 504)])
def test_a_retryable_engine_failure_has_a_retry_after_header(serve, kind, status):
    service = serve(lambda messages: EngineError("gone", kind=kind))
    answer = service.step(service.reset(), "ls", 1)
    assert (answer.status_code, answer.headers["retry-after"]) == (status, "1")


def test_a_low_confidence_answer_is_marked_or_refused_per_the_manifest(serve):
    sample = Completion("[0] ~", 10, 3, "stop", mean_logprob=-2.0)
    for below, status in (("mark", 200), ("refuse", 502)):
        service = serve(lambda messages: sample, confidence={"min_logprob": -1.0, "below": below})
        episode = service.reset()
        answer = service.step(episode, "ls", 1)
        assert answer.status_code == status
        assert len(service.ledger.episode(episode).steps) == (status == 200)
    assert answer.json()["error"]["kind"] == "unsure"


def test_agreement_is_the_share_of_equal_further_samples(serve):
    answers = iter(["a\n[0] ~", "a\n[0] ~", "b\n[0] ~", EngineError("gone")])
    service = serve(
        lambda messages: next(answers), confidence={"num_samples": 4, "min_agreement": 0.6}
    )
    answer = service.step(service.reset(), "ls", 1).json()
    assert (answer["observation"], answer["agreement"]) == ("a\n[0] ~", 0.5)
    assert answer["low_confidence"]


def sign(tmp_path, run, weights):
    run_weights = RunWeights(run=run, simulator=SIMULATOR, weights=weights)
    return sign_weights(run_weights, ensure_signer(tmp_path / "keys" / STEP_KEYS))


def test_closing_a_run_records_the_signature_of_its_final_weights(serve, tmp_path):
    service = serve()
    run, weights = service.run(), records.digest("final")
    body = {"final_weights": weights, "signature": sign(tmp_path, run, weights)}
    assert service.http("POST", f"/runs/{run}/close", body).status_code == 200
    assert service.ledger.run(run).closing.signature == body["signature"]


def test_a_run_is_not_closed_with_the_signature_of_another_run(serve, tmp_path):
    service = serve()
    run, signature = service.run(), sign(tmp_path, "another run", records.digest("final"))
    body = {"final_weights": records.digest("final"), "signature": signature}
    answer = service.http("POST", f"/runs/{run}/close", body)
    assert problem(answer) == (422, "input")
    assert service.ledger.run(run).closing is None


def test_the_whole_log_of_a_closed_run_is_signed_in_ledger_and_mirror(serve, tmp_path):
    service = serve()
    run = service.run()
    service.step(service.reset(run), "ls", 1)
    service.http("POST", f"/runs/{run}/close", {"final_weights": records.digest("final")})
    keys = load_trusted(tmp_path / "keys" / SIMULATOR_KEYS)
    evidence = Evidence(keys, WriteOnce(str(tmp_path / "mirror")))
    report = verify_run(run, service.ledger, evidence)
    assert (report.problems, report.signed_length) == ((), report.log_length)


def test_an_open_episode_expires_only_after_the_idle_time(serve):
    service = serve()
    run = service.run()
    idle, ended = service.reset(run), service.reset(run)
    service.http("POST", f"/episodes/{ended}/close")
    episode_store = service.transport.app.state.app_state.episode_store
    assert asyncio.run(episode_store.expire(3600)) == 0
    assert asyncio.run(episode_store.expire(-1)) == 1
    assert service.ledger.episode(idle).closed == "expired"
    assert problem(service.step(idle, "ls", 1)) == (409, "conflict")
