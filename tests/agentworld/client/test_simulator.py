import asyncio

import httpx
import pytest

import make
from agentworld.client.simulator import SIMULATOR_HEADER, SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.records.run import AgentRun, ResetResult, RunOpening, StepResult

OURS, OTHER = make.manifest().digest, make.manifest(control_text="another").digest
OPENING = RunOpening(agent="a", starting_weights=make.digest("starting"))
RUN = AgentRun(id="r", opening=OPENING, simulator=OURS)
RESET = ResetResult(simulator=OURS, run="r", episode="e", instruction="report rimo.txt")


def stepped(number, **fields):
    known = {"simulator": OURS, "run": "r", "episode": "e", "observation": "[0] ~"}
    return StepResult.model_validate({**known, "step": number, **fields})


class Script:
    """Answers with what it was given, in order, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, type):
            raise answer("lost", request=request)
        if isinstance(answer, httpx.Response):
            return answer
        return respond(200, answer.model_dump_json())


def respond(status, text, simulator=OURS):
    return httpx.Response(status, text=text, headers={SIMULATOR_HEADER: simulator})


def fail(status, kind, *, retryable=False):
    error = {"kind": kind, "message": "why", "retryable": retryable}
    return httpx.Response(status, json={"error": error}, headers={SIMULATOR_HEADER: OURS})


def client(script, **settings):
    return SimulatorClient("http://sim", transport=httpx.MockTransport(script), **settings)


def play(script, *actions, **settings):
    async def work():
        world = client(script, **settings)
        await world.open_run(OPENING)
        episode = await world.reset(make.task())
        return [await world.step(episode, action) for action in actions]

    return asyncio.run(work())


def failure(script, *actions, **settings):
    with pytest.raises(SimulatorError) as caught:
        play(script, *actions, **settings)
    return caught.value


def steps_sent(script):
    return [request.content for request in script.asked if request.url.path == "/step"]


def test_steps_are_numbered_as_they_are_answered():
    script = Script(RUN, RESET, stepped(1), stepped(2))
    assert [result.step for result in play(script, "ls", "pwd")] == [1, 2]
    assert b'"step":1' in steps_sent(script)[0]
    assert b'"step":2' in steps_sent(script)[1]


@pytest.mark.parametrize("lost", [httpx.ConnectError, httpx.ReadError, httpx.ReadTimeout])
def test_a_step_whose_answer_got_lost_is_sent_again_as_it_was(lost):
    script = Script(RUN, RESET, lost, stepped(1))
    assert play(script, "ls")[0].step == 1
    first, second = steps_sent(script)
    assert first == second


def test_a_run_whose_answer_got_lost_is_not_opened_twice():
    error = failure(Script(httpx.ReadError))
    assert (error.kind, error.retryable) == ("unavailable", True)


def test_a_run_that_never_arrived_is_sent_again():
    assert play(Script(httpx.ConnectError, RUN, RESET)) == []


def test_a_simulator_that_stays_away_is_an_error():
    script = Script(RUN, RESET, httpx.ConnectError, httpx.ConnectError)
    error = failure(script, "ls", attempts=2)
    assert (error.kind, error.retryable, len(steps_sent(script))) == ("unavailable", True, 2)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(404, "not-found", False), (409, "conflict", False), (503, "engine", True)],
)
def test_a_typed_failure_stays_typed_and_is_not_repeated(status, kind, retryable):
    script = Script(RUN, RESET, fail(status, kind, retryable=retryable))
    error = failure(script, "ls")
    assert (error.kind, error.retryable, str(error)) == (kind, retryable, "why")


def test_after_a_failure_the_same_step_may_be_tried_again():
    script = Script(RUN, RESET, fail(503, "engine", retryable=True), stepped(1))

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        episode = await world.reset(make.task())
        with pytest.raises(SimulatorError):
            await world.step(episode, "ls")
        return await world.step(episode, "ls")

    assert asyncio.run(work()).step == 1
    first, second = steps_sent(script)
    assert first == second


def test_an_answer_of_another_simulator_is_an_error():
    swapped = respond(200, stepped(1).model_dump_json(), OTHER)
    assert failure(Script(RUN, RESET, swapped), "ls").kind == "swapped"


def test_an_answer_that_names_no_simulator_is_an_error():
    unnamed = httpx.Response(200, text=stepped(1).model_dump_json())
    assert failure(Script(RUN, RESET, unnamed), "ls").kind == "swapped"


def test_a_run_is_opened_with_the_expected_simulator_alone():
    assert failure(Script(RUN), simulator=OTHER).kind == "swapped"


def test_a_run_of_another_simulator_is_not_entered():
    other = RUN.model_copy(update={"simulator": OTHER})
    assert failure(Script(other)).kind == "swapped"


def test_a_manifest_must_be_the_one_that_the_simulator_names():
    asked = client(Script(make.manifest(control_text="another")))
    with pytest.raises(SimulatorError, match="never moves"):
        asyncio.run(asked.manifest())
    assert asyncio.run(client(Script(make.manifest())).manifest()).digest == OURS


@pytest.mark.parametrize("text", ["<html>", "{}"])
def test_an_answer_that_is_none_is_an_error(text):
    assert failure(Script(RUN, RESET, respond(200, text)), "ls").kind == "protocol"


def test_a_failure_without_our_body_says_what_it_was():
    error = failure(Script(RUN, RESET, respond(502, "bad gateway")), "ls")
    assert (error.kind, error.retryable) == ("protocol", True)
    assert "bad gateway" in str(error)


def test_without_a_run_there_is_no_episode():
    with pytest.raises(InputError, match="no run is open"):
        asyncio.run(client(Script()).reset(make.task()))


def test_a_client_goes_on_in_another_event_loop():
    script = Script(RUN, RESET, stepped(1))
    world = client(script)
    asyncio.run(world.open_run(OPENING))
    episode = asyncio.run(world.reset(make.task()))
    assert asyncio.run(world.step(episode, "ls")).step == 1


def test_a_run_is_resumed_and_closed():
    closed = RUN.model_copy(update={"final_weights": make.digest("final")})

    async def work():
        world = client(Script(RUN, closed))
        await world.resume_run("r")
        return await world.close_run(make.digest("final"))

    assert asyncio.run(work()) == closed
