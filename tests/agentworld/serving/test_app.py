import asyncio

import pytest

from agentworld.errors import EngineError, InputError, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.writes import NewStep
from make import records

OPENING = {"agent": "shell-agent", "starting_weights": records.digest("starting")}
SIMULATOR = records.manifest().digest
TASK = records.task().model_dump(mode="json")


def problem(response):
    return response.status_code, response.json()["error"]["kind"]


def test_a_run_is_opened_counted_and_closed(serve):
    service = serve()
    run = service.run()
    service.step(service.reset(run), "ls", 1)
    state = service.http("GET", f"/runs/{run}").json()
    assert (state["simulator"], state["num_episodes"], state["num_steps"]) == (SIMULATOR, 1, 1)
    final = {"final_weights": records.digest("final")}
    assert service.http("POST", f"/runs/{run}/close", final).json()["closing"]
    assert service.http("POST", f"/runs/{run}/close", final).status_code == 200


def test_a_reset_gives_the_instruction_and_no_observation(serve):
    service = serve()
    answer = service.http("POST", "/episodes", {"run": service.run(), "task": TASK}).json()
    assert (answer["instruction"], answer["step"]) == ("report rimo.txt", 0)
    assert "observation" not in answer
    assert service.engine.requests == []


def test_a_step_returns_the_engine_answer_without_its_reasoning(serve):
    service = serve(lambda messages: "<think>easy</think>besa\n[0] ~")
    answer = service.step(service.reset(), "cat rimo.txt", 1).json()
    assert answer["observation"] == "besa\n[0] ~"
    assert (answer["step"], answer["reward"], answer["done"]) == (1, None, False)


def test_the_engine_reads_the_start_and_every_earlier_turn(serve):
    service = serve()
    episode = service.reset(initial_state="rimo.txt: besa", simulation_instruction="be slow")
    service.step(episode, "echo a", 1)
    service.step(episode, "echo b", 2)
    system, *turns = (message["content"] for message in service.engine.requests[-1].messages)
    assert system.endswith("rimo.txt: besa\nbe slow")
    assert turns == ["echo a", "a\n[0] ~", "echo b"]


def test_the_simulators_control_text_applies_to_episodes_without_an_instruction(serve):
    service = serve(control_text="fail twice")
    service.step(service.reset(), "ls", 1)
    service.step(service.reset(simulation_instruction="be slow"), "ls", 1)
    first, second = (request.messages[0]["content"] for request in service.engine.requests)
    assert first.endswith("fail twice")
    assert second.endswith("be slow")


def test_a_task_ends_with_its_closing_action(serve):
    service = serve()
    episode = service.reset(task=TASK)
    assert service.step(episode, "ls", 1).json()["reward"] is None
    answer = service.step(episode, "echo besa", 2).json()
    assert (answer["reward"], answer["done"], answer["truncated"]) == (1.0, True, False)


def test_a_task_ends_at_its_turn_limit_with_reward_0(serve):
    service = serve()
    episode = service.reset(task=TASK)
    answers = [service.step(episode, "ls", number).json() for number in (1, 2, 3)]
    assert [answer["done"] for answer in answers] == [False, False, True]
    assert (answers[-1]["reward"], answers[-1]["truncated"]) == (0.0, True)


def test_an_episode_without_a_task_has_no_reward_and_the_turn_limit_of_its_opening(serve):
    service = serve()
    answer = service.step(service.reset(turn_limit=1), "echo besa", 1).json()
    assert (answer["reward"], answer["done"], answer["truncated"]) == (None, True, True)


def test_a_repeated_step_gets_the_recorded_answer(serve):
    service = serve()
    episode = service.reset()
    first, second = service.step(episode, "echo a", 1), service.step(episode, "echo a", 1)
    assert first.content == second.content
    assert len(service.engine.requests) == 1


def test_a_finished_episode_repeats_its_last_step_and_refuses_a_next_step(serve):
    service = serve()
    episode = service.reset(task=TASK)
    closing = service.step(episode, "echo besa", 1)
    assert service.step(episode, "echo besa", 1).content == closing.content
    assert problem(service.step(episode, "ls", 2)) == (409, "conflict")


@pytest.mark.parametrize(
    ("action", "step", "message"),
    [("ls", 3, "is 2, not 3"), ("pwd", 1, "with another action")],
    ids=["a gap", "another action"],
)
def test_a_step_with_a_wrong_number_or_action_is_refused(serve, action, step, message):
    service = serve()
    episode = service.reset()
    service.step(episode, "ls", 1)
    answer = service.step(episode, action, step)
    assert problem(answer) == (409, "conflict")
    assert message in answer.json()["error"]["message"]
    assert len(service.ledger.episode(episode).steps) == 1


def test_concurrent_requests_for_the_same_step_get_one_answer(serve):
    service = serve()
    episode = service.reset()

    async def step_all():
        clients = [service.client() for _ in range(8)]
        return await asyncio.gather(*(client.step(episode, "echo a") for client in clients))

    assert len(set(asyncio.run(step_all()))) == 1
    assert len(service.ledger.episode(episode).steps) == 1


@pytest.mark.waits
def test_concurrent_episodes_are_each_recorded_once(serve):
    service = serve()
    run = service.run()

    async def play(client):
        episode = await client.reset(records.task(turn_limit=5))
        return [(await client.step(episode, "ls")).step for _ in range(5)]

    async def play_all():
        client = service.client()
        await client.resume_run(run)
        return await asyncio.gather(*(play(client) for _ in range(20)))

    assert asyncio.run(play_all()) == [[1, 2, 3, 4, 5]] * 20
    assert (service.ledger.run(run).num_episodes, service.ledger.run(run).num_steps) == (20, 100)


@pytest.mark.parametrize(
    ("error", "status", "kind", "retryable"),
    [
        (EngineError("gone"), 503, "engine", True),
        (EngineError("cut", kind="cut-off", retryable=False), 502, "cut-off", False),
        (EngineError("long", kind="context", retryable=False), 422, "context", False),
        (EngineError("no", kind="refused", retryable=False), 502, "refused", False),
        (EngineError("late", kind="slow"), 504, "slow", True),
        (EngineError("full", kind="capacity"), 429, "capacity", True),
        (EngineError("open", kind="open"), 503, "open", True),
    ],
)
def test_an_engine_failure_returns_a_typed_error_and_records_no_step(
    serve, error, status, kind, retryable
):
    service = serve(lambda messages: error)
    episode = service.reset()
    answer = service.step(episode, "ls", 1)
    assert problem(answer) == (status, kind)
    assert answer.json()["error"]["retryable"] is retryable
    assert service.ledger.episode(episode).steps == ()


@pytest.mark.parametrize("text", ["", "<think>no end", "<think>so</think>\n\n"])
def test_an_answer_without_an_observation_returns_an_error_and_records_no_step(serve, text):
    service = serve(lambda messages: text)
    episode = service.reset()
    assert problem(service.step(episode, "ls", 1)) == (502, "unparsable")
    assert service.ledger.episode(episode).steps == ()


def test_a_failed_step_may_be_tried_again(serve):
    answers = iter([EngineError("gone"), "[0] ~"])
    service = serve(lambda messages: next(answers))
    episode = service.reset()
    assert service.step(episode, "ls", 1).status_code == 503
    assert service.step(episode, "ls", 1).json()["observation"] == "[0] ~"


@pytest.mark.parametrize(
    ("retry_on", "status", "count"), [(["engine"], 200, 2), (["unparsable"], 503, 1), ([], 503, 1)]
)
def test_only_the_error_kinds_named_in_the_manifest_are_retried(serve, retry_on, status, count):
    answers = iter([EngineError("gone"), "[0] ~"])
    retry = {"attempts": 2, "retry_on": retry_on}
    service = serve(lambda messages: next(answers), retry=retry)
    assert service.step(service.reset(), "ls", 1).status_code == status
    assert len(service.engine.requests) == count


def test_an_unparsable_answer_is_not_retried_at_temperature_zero(serve):
    service = serve(lambda messages: "", retry={"attempts": 3, "retry_on": ["unparsable"]})
    assert service.step(service.reset(), "ls", 1).status_code == 502
    assert len(service.engine.requests) == 1


def test_a_step_that_exceeds_the_context_returns_a_context_error(serve):
    service = serve(context_tokens=300, sampling={"max_tokens": 200})
    episode = service.reset()
    assert service.step(episode, "ls", 1).status_code == 200
    assert problem(service.step(episode, "echo " + "a" * 200, 2)) == (422, "context")
    assert len(service.ledger.episode(episode).steps) == 1


def test_a_seeded_simulator_uses_equal_seeds_for_equal_episodes(serve):
    service = serve(sampling={"seed_policy": "seeded", "temperature": 1.0})
    for _ in range(2):
        episode = service.reset(task=TASK)
        service.step(episode, "ls", 1)
        service.step(episode, "ls", 2)
    first, second, third, fourth = (request.seed for request in service.engine.requests)
    assert (first, second) == (third, fourth)
    assert first != second


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/runs/nobody", None),
        ("GET", "/episodes/nobody", None),
        ("POST", "/episodes", {"run": "nobody"}),
        ("POST", "/steps", {"episode": "nobody", "action": "ls", "step": 1}),
        ("POST", "/runs/nobody/close", {"final_weights": records.digest("final")}),
        ("GET", "/nowhere", None),
    ],
)
def test_an_unknown_run_episode_or_path_is_404(serve, method, path, body):
    assert problem(serve().http(method, path, body)) == (404, "not-found")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runs", {}),
        ("/runs", {"agent": "a", "starting_weights": "latest"}),
        ("/episodes", {"run": "r", "unknown": 1}),
        ("/steps", {"episode": "e", "action": "ls", "step": "1"}),
        ("/steps", {"episode": "e", "action": 1, "step": 1}),
        ("/steps", {"episode": "e", "action": "ls", "step": 1, "seed": 1}),
        ("/steps", ["e", "ls", 1]),
        ("/steps", {"episode": "e", "action": "ls"}),
    ],
)
def test_an_invalid_request_body_is_422(serve, path, body):
    assert problem(serve().http("POST", path, body)) == (422, "input")


@pytest.mark.parametrize(
    "closing",
    ["echo (", "(?L)(?u)a", "(" * 2000 + ")" * 2000, "a" * 5000],
    ids=["open", "flags", "nested", "long"],
)
def test_a_task_with_an_invalid_success_rule_is_refused_at_reset(serve, closing):
    service = serve()
    task = {**TASK, "success": {"closing": closing, "output": ""}}
    answer = service.http("POST", "/episodes", {"run": service.run(), "task": task})
    assert problem(answer) == (422, "input")


def test_a_closed_run_refuses_steps_episodes_and_other_final_weights(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    service.http("POST", f"/runs/{run}/close", {"final_weights": records.digest("final")})
    assert problem(service.step(episode, "ls", 1)) == (409, "conflict")
    assert problem(service.http("POST", "/episodes", {"run": run})) == (409, "conflict")
    closing = {"final_weights": records.digest("other")}
    assert problem(service.http("POST", f"/runs/{run}/close", closing)) == (409, "conflict")


def test_another_simulator_refuses_a_run_and_its_episodes(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    other_service = serve(control_text="another version")
    assert problem(other_service.http("GET", f"/runs/{run}")) == (409, "conflict")
    assert problem(other_service.http("POST", "/episodes", {"run": run})) == (409, "conflict")
    assert problem(other_service.step(episode, "ls", 1)) == (409, "conflict")


def test_a_second_service_on_the_same_ledger_continues_an_episode(serve):
    first = serve()
    episode = first.reset()
    first.step(episode, "echo a", 1)
    second = serve()
    assert second.step(episode, "echo b", 2).json()["step"] == 2
    assert second.engine.requests[-1].messages[-2]["content"] == "a\n[0] ~"


def test_an_episode_response_has_its_steps_closing_reason_and_head(serve):
    service = serve()
    episode = service.reset(task=TASK)
    service.step(episode, "echo besa", 1)
    state = service.http("GET", f"/episodes/{episode}").json()
    assert [step["observation"] for step in state["steps"]] == ["besa\n[0] ~"]
    assert state["closed"] == "done"
    assert state["head"] == service.ledger.episode(episode).head


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/health"), ("GET", "/manifest"), ("GET", "/runs/nobody")]
)
def test_every_response_names_the_simulator(serve, method, path):
    assert serve().http(method, path).headers["x-agentworld-simulator"] == SIMULATOR


def test_every_record_in_a_response_names_the_simulator(serve):
    service = serve()
    run = service.run()
    episode = service.reset(run)
    answers = [
        service.http("GET", f"/runs/{run}"),
        service.http("POST", "/episodes", {"run": run}),
        service.step(episode, "ls", 1),
        service.http("GET", f"/episodes/{episode}"),
        service.http("GET", "/health"),
    ]
    assert {answer.json()["simulator"] for answer in answers} == {SIMULATOR}


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ({"http://here": "closed", "http://there": "half-open"}, "healthy"),
        ({"http://here": "closed", "http://there": "open"}, "degraded"),
        ({"http://here": "open"}, "unhealthy"),
        ({}, "healthy"),
    ],
)
def test_health_returns_200_and_reports_the_state_of_the_engines(serve, states, status):
    answer = serve(states=lambda: states).http("GET", "/health")
    assert (answer.status_code, answer.json()) == (
        200,
        {"simulator": SIMULATOR, "status": status},
    )


def test_the_pinned_manifest_is_served_unchanged(serve):
    assert serve().http("GET", "/manifest").json() == records.manifest().model_dump(mode="json")


def test_a_step_that_cannot_be_written_returns_a_retryable_store_error(serve):
    class FullLedger(Ledger):
        def write(self, writes):
            if any(isinstance(write, NewStep) for write in writes):
                raise StoreError(f"no room for {len(writes)} more steps")
            super().write(writes)

    service = serve(ledger=FullLedger)
    answer = service.step(service.reset(), "ls", 1)
    assert problem(answer) == (503, "store")
    assert answer.json()["error"]["retryable"]
    assert answer.headers["retry-after"] == "1"


def test_an_internal_error_names_the_simulator(serve):
    service = serve(lambda messages: 1 / 0)
    answer = service.step(service.reset(), "ls", 1)
    assert problem(answer) == (500, "internal")
    assert answer.headers["x-agentworld-simulator"] == SIMULATOR


def test_a_body_that_is_not_utf8_is_an_input_error(serve):
    assert problem(serve().send("POST", "/episodes", b"\xff")) == (400, "input")
    assert problem(serve().send("POST", "/steps", b"\xff")) == (422, "input")


@pytest.mark.parametrize("path", ["/steps", "/episodes"])
def test_a_client_disconnect_during_a_request_is_400(serve, path):
    answers = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    asyncio.run(serve().transport.app(scope, receive, send))
    assert answers[0]["status"] == 400


def test_a_manifest_with_another_renderer_version_is_not_served(serve):
    with pytest.raises(InputError, match="pins renderer 'another'"):
        serve(renderer="another")


@pytest.mark.waits
def test_openapi_declares_every_error_status_of_a_step(serve):
    responses = serve().http("GET", "/openapi.json").json()["paths"]["/steps"]["post"]["responses"]
    statuses = 401, 403, 404, 408, 409, 413, 422, 429, 502, 503, 504
    assert responses.keys() == {"200", *map(str, statuses)}
    schema = responses["503"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Failure"}
