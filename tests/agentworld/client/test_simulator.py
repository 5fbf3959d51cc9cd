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

OURS, OTHER = records.manifest().digest, records.manifest(control_text="another").digest
OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
RUN = AgentRun(id="r", opening=OPENING, simulator=OURS)
RESET = ResetResult(
    simulator=OURS,
    run="r",
    episode="e",
    instruction="report rimo.txt",
    control=EpisodeOpening(run="r").control,
)


def stepped(number, **fields):
    known = {"simulator": OURS, "run": "r", "episode": "e", "observation": "[0] ~"}
    return StepResult(**{**known, "step": number, **fields})


class Script:
    """Sends given responses, in order, and records the requests."""

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
        if isinstance(answer, StepResult):
            return respond(200, json.dumps(answer._asdict()))
        if isinstance(answer, AgentRun) and request.url.path == "/runs":
            answer = OpenedRun(run=answer, token="awr_1")
        return respond(200, answer.model_dump_json())


def respond(status, text, simulator=OURS):
    return httpx.Response(status, text=text, headers={SIMULATOR_HEADER: simulator})


def no_content():
    return httpx.Response(204, headers={SIMULATOR_HEADER: OURS})


def fail(status, kind, *, retryable=False):
    error = {"kind": kind, "message": "why", "retryable": retryable}
    return httpx.Response(status, json={"error": error}, headers={SIMULATOR_HEADER: OURS})


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
    with pytest.raises(SimulatorError) as caught:
        play(script, *actions, **settings)
    return caught.value


def steps_sent(script):
    return [request.content for request in script.asked if request.url.path == "/steps"]


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


def test_a_reset_whose_answer_got_lost_is_sent_again_under_its_name():
    script = Script(RUN, httpx.ReadError, RESET, RESET)

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        await world.reset(records.task())
        await world.reset(records.task())

    asyncio.run(work())
    _, first, again, other = (request.headers.get("idempotency-key") for request in script.asked)
    assert first == again != other


@pytest.mark.parametrize("lost", [httpx.ConnectError, httpx.ReadError])
def test_a_run_whose_answer_got_lost_is_sent_again_under_its_name(lost):
    script = Script(lost, RUN, RESET)
    assert play(script) == []
    first, again, _ = (request.headers.get("idempotency-key") for request in script.asked)
    assert first == again is not None


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
        episode = await world.reset(records.task())
        with pytest.raises(SimulatorError):
            await world.step(episode, "ls")
        return await world.step(episode, "ls")

    assert asyncio.run(work()).step == 1
    first, second = steps_sent(script)
    assert first == second


def test_an_answer_of_another_simulator_is_an_error():
    swapped = respond(200, json.dumps(stepped(1)._asdict()), OTHER)
    assert failure(Script(RUN, RESET, swapped), "ls").kind == "swapped"


def test_an_answer_that_names_no_simulator_is_an_error():
    script = Script(RUN, RESET, httpx.Response(204))
    with pytest.raises(SimulatorError) as caught:
        ended(script)
    assert caught.value.kind == "swapped"


def ended(script):
    """An episode that its agent ends at once."""

    async def work():
        world = client(script)
        await world.open_run(OPENING)
        await world.end(await world.reset(records.task()))

    asyncio.run(work())


def test_a_simulator_may_be_named_in_the_body_alone():
    unnamed = httpx.Response(200, text=json.dumps(stepped(1)._asdict()))
    assert play(Script(RUN, RESET, unnamed), "ls")[0].step == 1
    swapped = httpx.Response(200, text=json.dumps(stepped(1, simulator=OTHER)._asdict()))
    assert failure(Script(RUN, RESET, swapped), "ls").kind == "swapped"


def test_a_failure_may_name_no_simulator_but_not_another_one():
    error = {"error": {"kind": "not-found", "message": "why", "retryable": False}}
    assert failure(Script(RUN, RESET, httpx.Response(404, json=error)), "ls").kind == "not-found"
    swapped = httpx.Response(404, json=error, headers={SIMULATOR_HEADER: OTHER})
    assert failure(Script(RUN, RESET, swapped), "ls").kind == "swapped"


@pytest.mark.parametrize("answer", ["reset", "closed", "episode"])
def test_every_body_that_names_a_simulator_is_checked(answer):
    other = Episode.new("e", OTHER, EpisodeOpening(run="r"))
    given = {
        "reset": RESET.model_copy(update={"simulator": OTHER}),
        "closed": RUN.model_copy(update={"simulator": OTHER}),
        "episode": respond(200, write_episode(other).decode()),
    }[answer]

    async def work():
        world = client(Script(RUN, given))
        await world.open_run(OPENING)
        if answer == "closed":
            await world.close_run(records.digest("final"))
        elif answer == "reset":
            await world.reset(records.task())
        else:
            await world.episode("e")

    with pytest.raises(SimulatorError) as caught:
        asyncio.run(work())
    assert caught.value.kind == "swapped"


def test_a_run_reads_the_manifest_of_its_own_simulator():
    script = Script(records.manifest(), RUN, records.manifest())

    async def work():
        first = client(script)
        await first.manifest()
        world = client(script)
        await world.open_run(OPENING)
        await world.manifest()

    asyncio.run(work())
    assert [request.url.path for request in script.asked] == [
        *("/manifest", "/runs", f"/simulators/{OURS}/manifest"),
    ]


def test_a_run_is_opened_with_the_expected_simulator_alone():
    assert failure(Script(RUN), simulator=OTHER).kind == "swapped"


def test_a_run_of_another_simulator_is_not_entered():
    other = RUN.model_copy(update={"simulator": OTHER})
    assert failure(Script(other)).kind == "swapped"


def test_a_manifest_must_be_the_one_that_the_simulator_names():
    asked = client(Script(records.manifest(control_text="another")))
    with pytest.raises(SimulatorError, match="never changes"):
        asyncio.run(asked.manifest())
    assert asyncio.run(client(Script(records.manifest())).manifest()).digest == OURS


@pytest.mark.parametrize("text", ["<html>", "{}"])
def test_an_answer_that_is_none_is_an_error(text):
    assert failure(Script(RUN, RESET, respond(200, text)), "ls").kind == "protocol"


def test_a_failure_without_our_body_says_what_it_was():
    error = failure(Script(RUN, RESET, respond(502, "bad gateway")), "ls")
    assert (error.kind, error.retryable) == ("protocol", True)
    assert "bad gateway" in str(error)


def test_without_a_run_there_is_no_episode():
    with pytest.raises(InputError, match="no run is open"):
        asyncio.run(client(Script()).reset(records.task()))


def test_a_client_goes_on_in_another_event_loop():
    script = Script(RUN, RESET, stepped(1))
    world = client(script)
    asyncio.run(world.open_run(OPENING))
    episode = asyncio.run(world.reset(records.task()))
    assert asyncio.run(world.step(episode, "ls")).step == 1


def test_a_run_is_resumed_and_closed():
    closed = RUN.model_copy(update={"final_weights": records.digest("final")})

    async def work():
        world = client(Script(RUN, closed))
        await world.resume_run("r")
        return await world.close_run(records.digest("final"))

    assert asyncio.run(work()) == closed


def test_an_answer_to_another_step_is_an_error():
    error = failure(Script(RUN, RESET, stepped(2)), "ls")
    assert error.kind == "protocol"
    assert "of step 2 of episode 'e', and step 1 of e was asked" in str(error)


def test_an_answer_whose_body_names_another_simulator_is_an_error():
    answer = respond(200, json.dumps(stepped(1, simulator=OTHER)._asdict()))
    assert failure(Script(RUN, RESET, answer), "ls").kind == "swapped"


def test_an_action_of_any_kind_is_sent_as_it_is():
    script = Script(RUN, RESET, stepped(1))
    play(script, "echo \x00\ud800")
    assert json.loads(steps_sent(script)[0])["action"] == "echo \x00\ud800"


@pytest.mark.parametrize("url", ["sim", "ftp://sim", "http://", "http://sim:port"])
def test_what_is_no_address_is_refused_before_anything_is_sent(url):
    with pytest.raises(InputError, match="is not a simulator's address"):
        SimulatorClient(url)


def test_a_name_is_one_part_of_a_path():
    script = Script(RUN)
    asyncio.run(client(script).resume_run("../episodes/e?x"))
    assert script.asked[0].url.raw_path == b"/runs/..%2Fepisodes%2Fe%3Fx"


def acted(script, folder, *actions, sampled=None, end=False):
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


BEGIN = TrajectoryBegin("r", "e", OURS, 0, "shell-report-1")


def test_an_agents_log_tells_of_each_episode_from_its_begin_to_its_end(tmp_path):
    script = Script(RUN, RESET, stepped(1), stepped(2, reward=1.0, done=True), no_content())
    begin, one, two, end = acted(script, tmp_path, "ls", "pwd", end=True)
    assert begin == BEGIN
    assert [(step.step, step.action, step.reward) for step in (one, two)] == [
        (1, "ls", None),
        (2, "pwd", 1.0),
    ]
    assert one.observation_digest == text_digest("[0] ~")
    assert end == TrajectoryEnd("r", "e", 2, "done")


def test_an_episode_that_its_agent_ends_is_closed_in_the_log(tmp_path):
    *_, end = acted(Script(RUN, RESET, stepped(1), no_content()), tmp_path, "ls", end=True)
    assert end == TrajectoryEnd("r", "e", 1, "closed")


def test_what_the_policy_sampled_is_in_the_log_beside_the_action(tmp_path):
    sampled = Sampled("let me see \ud800<end>", records.digest("weights"), 7)
    _, step = acted(Script(RUN, RESET, stepped(1)), tmp_path, "ls", sampled=sampled)
    assert (step.sampled, step.policy, step.policy_step) == sampled
    assert step.action == "ls"


def test_where_nothing_is_known_of_the_policy_the_action_is_what_it_sampled(tmp_path):
    _, step = acted(Script(RUN, RESET, stepped(1)), tmp_path, "ls")
    assert (step.sampled, step.policy, step.policy_step) == ("ls", None, None)


def test_a_step_without_an_answer_is_not_in_the_log(tmp_path):
    script = Script(RUN, RESET, fail(503, "engine"))
    with pytest.raises(SimulatorError):
        acted(script, tmp_path, "ls")
    assert list(read_trajectory(tmp_path)) == [BEGIN]


def test_a_step_that_the_log_could_not_take_is_asked_again_under_its_number(tmp_path):
    script = Script(RUN, RESET, stepped(1), stepped(1))
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
    first, second = steps_sent(script)
    assert first == second
    assert [line.step for line in read_trajectory(tmp_path / "log")] == [1]
