import asyncio
import json

import httpx
import pytest

from agentworld.client.simulator import SIMULATOR_HEADER, SimulatorClient
from agentworld.client.trajectory import TrajectoryLog, read_trajectory
from agentworld.errors import InputError, SimulatorError, StoreError
from agentworld.http.schemas import write_episode
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    ResetResult,
    StepResult,
    text_digest,
)
from agentworld.records.run import AgentRun, OpenedRun, RunOpening
from agentworld.records.trajectory_log import Sampled, TrajectoryBegin, TrajectoryEnd
from make import records

DIGEST, OTHER = records.manifest().digest, records.manifest(control_text="another").digest
OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
RUN = AgentRun(id="r", opening=OPENING, simulator=DIGEST)
RESET = ResetResult(
    simulator=DIGEST,
    run="r",
    episode="e",
    instruction="report rimo.txt",
    control=EpisodeOpening(run="r").control,
)


def reply(number, **fields):
    defaults = {"simulator": DIGEST, "run": "r", "episode": "e", "observation": "[0] ~"}
    return StepResult(**{**defaults, "step": number, **fields})


class Script:
    """Sends these responses in order, and records the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, type):
            raise answer("lost", request=request)
        if isinstance(answer, httpx.Response):
            return answer
        if isinstance(answer, StepResult):
            return respond(200, json.dumps(answer._asdict()))
        if isinstance(answer, AgentRun) and request.url.path == "/runs":
            answer = OpenedRun(run=answer, token="awr_1")
        return respond(200, answer.model_dump_json())


def respond(status, text, simulator=DIGEST):
    return httpx.Response(status, text=text, headers={SIMULATOR_HEADER: simulator})


def no_content():
    return httpx.Response(204, headers={SIMULATOR_HEADER: DIGEST})


def fail(status, kind, *, retryable=False):
    error = {"kind": kind, "message": "why", "retryable": retryable}
    return httpx.Response(status, json={"error": error}, headers={SIMULATOR_HEADER: DIGEST})


def client(script, **settings):
    return SimulatorClient("http://sim", transport=httpx.MockTransport(script), **settings)


def play(script, *actions, **settings):
    async def work():
        world = client(script, **settings)
        await world.open_run(OPENING)
        episode = await world.reset(records.task())
        return [await world.step(episode, action) for action in actions]

    return asyncio.run(work())


def failure(script, *actions, **settings):
    with pytest.raises(SimulatorError) as error:
        play(script, *actions, **settings)
    return error.value


def step_bodies(script):
    return [request.content for request in script.requests if request.url.path == "/steps"]


def test_steps_are_numbered_in_the_order_of_their_answers():
    script = Script(RUN, RESET, reply(1), reply(2))
    assert [result.step for result in play(script, "ls", "pwd")] == [1, 2]
    assert b'"step":1' in step_bodies(script)[0]
    assert b'"step":2' in step_bodies(script)[1]


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadError, httpx.ReadTimeout])
def test_a_step_with_a_lost_response_is_sent_again_unchanged(error):
    script = Script(RUN, RESET, error, reply(1))
    assert play(script, "ls")[0].step == 1
    first, second = step_bodies(script)
    assert first == second


def test_a_reset_with_a_lost_response_is_sent_again_with_its_idempotency_key():
    script = Script(RUN, httpx.ReadError, RESET, RESET)

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        await world.reset(records.task())
        await world.reset(records.task())

    asyncio.run(work())
    _, first, second, other = (
        request.headers.get("idempotency-key") for request in script.requests
    )
    assert first == second != other


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadError])
def test_a_run_opening_with_a_lost_response_is_sent_again_with_its_idempotency_key(error):
    script = Script(error, RUN, RESET)
    assert play(script) == []
    first, second, _ = (request.headers.get("idempotency-key") for request in script.requests)
    assert first == second is not None


def test_an_unreachable_simulator_is_a_retryable_error():
    script = Script(RUN, RESET, httpx.ConnectError, httpx.ConnectError)
    error = failure(script, "ls", attempts=2)
    assert (error.kind, error.retryable, len(step_bodies(script))) == ("unavailable", True, 2)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(404, "not-found", False), (409, "conflict", False), (503, "engine", True)],
)
def test_a_typed_failure_keeps_its_kind_and_is_not_retried(status, kind, retryable):
    script = Script(RUN, RESET, fail(status, kind, retryable=retryable))
    error = failure(script, "ls")
    assert (error.kind, error.retryable, str(error)) == (kind, retryable, "why")


def test_after_a_failure_the_same_step_may_be_tried_again():
    script = Script(RUN, RESET, fail(503, "engine", retryable=True), reply(1))

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        episode = await world.reset(records.task())
        with pytest.raises(SimulatorError):
            await world.step(episode, "ls")
        return await world.step(episode, "ls")

    assert asyncio.run(work()).step == 1
    first, second = step_bodies(script)
    assert first == second


def test_an_answer_of_another_simulator_is_an_error():
    response = respond(200, json.dumps(reply(1)._asdict()), OTHER)
    assert failure(Script(RUN, RESET, response), "ls").kind == "swapped"


def test_an_answer_that_names_no_simulator_is_an_error():
    script = Script(RUN, RESET, httpx.Response(204))
    with pytest.raises(SimulatorError) as error:
        end_episode(script)
    assert error.value.kind == "swapped"


def end_episode(script):
    """Begins an episode and ends it at once."""

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        await world.end(await world.reset(records.task()))

    asyncio.run(work())


def test_a_simulator_may_be_named_only_in_the_body():
    response = httpx.Response(200, text=json.dumps(reply(1)._asdict()))
    assert play(Script(RUN, RESET, response), "ls")[0].step == 1
    other_response = httpx.Response(200, text=json.dumps(reply(1, simulator=OTHER)._asdict()))
    assert failure(Script(RUN, RESET, other_response), "ls").kind == "swapped"


def test_a_failure_may_name_no_simulator_but_not_another_simulator():
    error = {"error": {"kind": "not-found", "message": "why", "retryable": False}}
    assert failure(Script(RUN, RESET, httpx.Response(404, json=error)), "ls").kind == "not-found"
    response = httpx.Response(404, json=error, headers={SIMULATOR_HEADER: OTHER})
    assert failure(Script(RUN, RESET, response), "ls").kind == "swapped"


@pytest.mark.parametrize("answer", ["reset", "closed", "episode"])
def test_every_body_that_names_a_simulator_is_checked(answer):
    episode = Episode.new("e", OTHER, EpisodeOpening(run="r"))
    response = {
        "reset": RESET.model_copy(update={"simulator": OTHER}),
        "closed": RUN.model_copy(update={"simulator": OTHER}),
        "episode": respond(200, write_episode(episode).decode()),
    }[answer]

    async def work():
        world = client(Script(RUN, response))
        await world.open_run(OPENING)
        if answer == "closed":
            await world.close_run(records.digest("final"))
        elif answer == "reset":
            await world.reset(records.task())
        else:
            await world.episode("e")

    with pytest.raises(SimulatorError) as error:
        asyncio.run(work())
    assert error.value.kind == "swapped"


def test_a_run_reads_the_manifest_of_its_own_simulator():
    script = Script(records.manifest(), RUN, records.manifest())

    async def work():
        first_client = client(script)
        await first_client.manifest()
        world = client(script)
        await world.open_run(OPENING)
        await world.manifest()

    asyncio.run(work())
    assert [request.url.path for request in script.requests] == [
        *("/manifest", "/runs", f"/simulators/{DIGEST}/manifest"),
    ]


def test_opening_a_run_with_an_unexpected_simulator_is_an_error():
    assert failure(Script(RUN), simulator=OTHER).kind == "swapped"


def test_a_run_whose_body_names_another_simulator_is_an_error():
    other_run = RUN.model_copy(update={"simulator": OTHER})
    assert failure(Script(other_run)).kind == "swapped"


def test_a_manifest_must_have_the_digest_of_its_simulator():
    world = client(Script(records.manifest(control_text="another")))
    with pytest.raises(SimulatorError, match="never changes"):
        asyncio.run(world.manifest())
    assert asyncio.run(client(Script(records.manifest())).manifest()).digest == DIGEST


@pytest.mark.parametrize("text", ["<html>", "{}"])
def test_an_unreadable_response_is_a_protocol_error(text):
    assert failure(Script(RUN, RESET, respond(200, text)), "ls").kind == "protocol"


def test_a_failure_without_a_typed_body_contains_the_text_of_the_response():
    error = failure(Script(RUN, RESET, respond(502, "bad gateway")), "ls")
    assert (error.kind, error.retryable) == ("protocol", True)
    assert "bad gateway" in str(error)


def test_a_reset_without_an_open_run_is_refused():
    with pytest.raises(InputError, match="no run is open"):
        asyncio.run(client(Script()).reset(records.task()))


def test_a_client_continues_in_another_event_loop():
    script = Script(RUN, RESET, reply(1))
    world = client(script)
    asyncio.run(world.open_run(OPENING))
    episode = asyncio.run(world.reset(records.task()))
    assert asyncio.run(world.step(episode, "ls")).step == 1


def test_a_run_is_resumed_and_closed():
    closed_run = RUN.model_copy(update={"final_weights": records.digest("final")})

    async def work():
        world = client(Script(RUN, closed_run))
        await world.resume_run("r")
        return await world.close_run(records.digest("final"))

    assert asyncio.run(work()) == closed_run


def test_an_answer_to_another_step_is_an_error():
    error = failure(Script(RUN, RESET, reply(2)), "ls")
    assert error.kind == "protocol"
    assert "of step 2 of episode 'e', and step 1 of e was asked" in str(error)


def test_an_answer_whose_body_names_another_simulator_is_an_error():
    answer = respond(200, json.dumps(reply(1, simulator=OTHER)._asdict()))
    assert failure(Script(RUN, RESET, answer), "ls").kind == "swapped"


def test_an_action_with_any_characters_is_sent_unchanged():
    script = Script(RUN, RESET, reply(1))
    play(script, "echo \x00\ud800")
    assert json.loads(step_bodies(script)[0])["action"] == "echo \x00\ud800"


@pytest.mark.parametrize("url", ["sim", "ftp://sim", "http://", "http://sim:port"])
def test_an_invalid_address_is_refused_when_the_client_is_made(url):
    with pytest.raises(InputError, match="is not a simulator's address"):
        SimulatorClient(url)


def test_a_name_in_a_path_is_percent_encoded():
    script = Script(RUN)
    asyncio.run(client(script).resume_run("../episodes/e?x"))
    assert script.requests[0].url.raw_path == b"/runs/..%2Fepisodes%2Fe%3Fx"


def play_logged(script, folder, *actions, sampled=None, end=False):
    """The agent's log after these actions."""

    async def work():
        with TrajectoryLog(folder) as trajectory:
            world = client(script, trajectory=trajectory)
            await world.open_run(OPENING)
            episode = await world.reset(records.task())
            for action in actions:
                await world.step(episode, action, sampled)
            if end:
                await world.end(episode)

    asyncio.run(work())
    return list(read_trajectory(folder))


BEGIN = TrajectoryBegin("r", "e", DIGEST, 0, "shell-report-1")


def test_the_agents_log_contains_the_begin_the_steps_and_the_end_of_an_episode(tmp_path):
    script = Script(RUN, RESET, reply(1), reply(2, reward=1.0, done=True), no_content())
    begin, first, second, end = play_logged(script, tmp_path, "ls", "pwd", end=True)
    assert begin == BEGIN
    assert [(step.step, step.action, step.reward) for step in (first, second)] == [
        (1, "ls", None),
        (2, "pwd", 1.0),
    ]
    assert first.observation_digest == text_digest("[0] ~")
    assert end == TrajectoryEnd("r", "e", 2, "done")


def test_an_episode_ended_by_its_agent_is_logged_as_closed(tmp_path):
    *_, end = play_logged(Script(RUN, RESET, reply(1), no_content()), tmp_path, "ls", end=True)
    assert end == TrajectoryEnd("r", "e", 1, "closed")


def test_the_log_contains_the_policys_sampled_text_beside_the_action(tmp_path):
    sampled = Sampled("let me see \ud800<end>", records.digest("weights"), 7)
    _, step = play_logged(Script(RUN, RESET, reply(1)), tmp_path, "ls", sampled=sampled)
    assert (step.sampled, step.policy, step.policy_step) == sampled
    assert step.action == "ls"


def test_without_a_policy_the_log_contains_the_action_as_the_sampled_text(tmp_path):
    _, step = play_logged(Script(RUN, RESET, reply(1)), tmp_path, "ls")
    assert (step.sampled, step.policy, step.policy_step) == ("ls", None, None)


def test_a_step_without_an_answer_is_not_in_the_log(tmp_path):
    script = Script(RUN, RESET, fail(503, "engine"))
    with pytest.raises(SimulatorError):
        play_logged(script, tmp_path, "ls")
    assert list(read_trajectory(tmp_path)) == [BEGIN]


def test_a_step_that_could_not_be_logged_is_sent_again_with_its_number(tmp_path):
    script = Script(RUN, RESET, reply(1), reply(1))
    log = TrajectoryLog(tmp_path / "log")
    world = client(script, trajectory=log)

    async def work():
        await world.open_run(OPENING)
        episode = await world.reset(records.task())
        log.close()
        (tmp_path / "log").rename(tmp_path / "moved")
        (tmp_path / "log").write_text("no folder")
        with pytest.raises(StoreError, match="cannot be written"):
            await world.step(episode, "ls")
        (tmp_path / "log").unlink()
        await world.step(episode, "ls")

    asyncio.run(work())
    first, second = step_bodies(script)
    assert first == second
    assert [line.step for line in read_trajectory(tmp_path / "log")] == [1]
