"""The traces of a data set, with a scripted local endpoint."""

from pathlib import Path

import pytest

from agentworld.data.tracer import usable_rollout
from agentworld.data.traces import YIELDS, trace_prompts
from agentworld.errors import InputError, JudgeError
from agentworld.records.base import now
from agentworld.records.traces import TraceReport
from agentworld.rendering.messages import world_messages
from agentworld.scoring.answers import Answer
from agentworld.storage.traces import MANIFEST, read_traces
from make import tracing, training
from make.tracing import JUDGE, TEACHER, preference, requests_to, traces_of, traces_recipe, verdict

SAMPLES = training.samples()[:4]

pytestmark = pytest.mark.waits


@pytest.fixture
def data(tmp_path):
    return tracing.prepared(tmp_path / "store", SAMPLES)


def prompts(recipe=None):
    recipe = recipe or traces_recipe("")
    return [prompt for sample in SAMPLES for prompt in trace_prompts(recipe, sample)]


def total(folder: Path):
    return TraceReport.read(folder / "out" / YIELDS).total


def test_traces_have_the_teachers_thought_and_observation_in_the_order_of_the_pool(tmp_path, data):
    with tracing.endpoints() as server:
        trace_set = traces_of(tmp_path, data, traces_recipe(server.url))
    traces = read_traces(tmp_path / "out")
    assert [trace.trajectory for trace in traces] == [sample.trajectory for sample in SAMPLES]
    assert trace_set.num_traces == len(SAMPLES) == 4
    for trace in traces:
        number = trace.thought.removeprefix("so ")
        assert (trace.observation, trace.score, trace.domain) == (f"shows {number}", 5.0, "shell")


def test_the_teacher_gets_the_world_models_prompt_without_the_truth(tmp_path, data):
    with tracing.endpoints() as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    messages = [request.body["messages"] for request in requests_to(server, TEACHER)]
    expected = [
        world_messages(
            prompt.sample.prompt,
            prompt.sample.turns[: prompt.turn],
            prompt.sample.turns[prompt.turn].action,
        )
        for prompt in prompts()
        for _ in range(3)
    ]
    assert sorted(map(str, messages)) == sorted(map(str, expected))


def test_the_judge_sees_the_truth_and_no_thought(tmp_path, data):
    with tracing.endpoints() as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    questions = [tracing.question_of(request) for request in requests_to(server, JUDGE)]
    assert all("## Truth" in question for question in questions)
    assert not [question for question in questions if "think" in question or "so 1" in question]


def test_the_yields_count_every_stage_with_its_answers_and_tokens(tmp_path, data):
    with tracing.endpoints() as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    report = TraceReport.read(tmp_path / "out" / YIELDS)
    counts = report.total
    assert set(report.domains) == {"shell"}
    assert (counts.prompts, counts.rollouts, counts.scored, counts.passed) == (4, 12, 12, 12)
    assert (counts.selected, counts.rejected, counts.holes, counts.retained) == (4, 0, 0, 1.0)
    assert (counts.unusable, counts.unanswered) == (0, 0)
    assert counts.turns == sum(trace.turn + 1 for trace in read_traces(tmp_path / "out"))
    assert counts.teacher.num_answers == len(requests_to(server, TEACHER)) == 12
    # Three scores, and three pairs in both orders.
    assert counts.judge.num_answers == len(requests_to(server, JUDGE)) == 4 * 9
    assert (counts.teacher.num_prompt_tokens, counts.teacher.num_tokens) == (3 * 12, 12)


def test_a_price_that_no_table_has_is_unknown_and_not_zero(tmp_path, data):
    with tracing.endpoints() as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    assert total(tmp_path).teacher.dollars is None


def test_the_pairwise_comparison_selects_the_winner(tmp_path, data):
    def judge(request):
        if not tracing.is_comparison(request):
            return verdict(5)
        question = tracing.question_of(request)
        for name in ("A", "B"):
            if f"## Prediction {name}\n```\nshows 1\n" in question:
                return preference(name)
        return preference("tie")

    with tracing.endpoints(judge=judge) as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
        traces_of(tmp_path, data, traces_recipe(server.url, pairwise=False), "by score")
    assert {trace.observation for trace in read_traces(tmp_path / "out")} == {"shows 1"}
    assert {trace.observation for trace in read_traces(tmp_path / "by score")} == {"shows 0"}


def test_a_prompt_whose_winner_is_under_the_threshold_is_rejected(tmp_path, data):
    prompt = prompts()[0]

    def judge(request):
        is_good = tracing.asks_about(request, prompt) and "shows 0" in tracing.question_of(request)
        return preference("tie") if tracing.is_comparison(request) else verdict(4 if is_good else 3)

    with tracing.endpoints(judge=judge) as server:
        traces_of(tmp_path, data, traces_recipe(server.url, threshold=4))
    (trace,) = read_traces(tmp_path / "out")
    assert (trace.observation, trace.score) == ("shows 0", 4.0)
    counts = total(tmp_path)
    assert (counts.selected, counts.rejected, counts.holes, counts.passed) == (1, 3, 0, 1)


@pytest.mark.parametrize("kind", ["score", "comparison"])
def test_a_missing_verdict_is_a_hole_and_neither_a_rejection_nor_a_score(tmp_path, data, kind):
    prompt = prompts()[0]

    def judge(request):
        is_missing = tracing.is_comparison(request) == (kind == "comparison")
        if is_missing and tracing.asks_about(request, prompt):
            return "I would rather not"
        return tracing.approves(request)

    with tracing.endpoints(judge=judge) as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    counts = total(tmp_path)
    assert (counts.selected, counts.rejected, counts.holes) == (3, 0, 1)
    assert (counts.rollouts, counts.scored) == (12, 9 if kind == "score" else 12)
    traces = read_traces(tmp_path / "out")
    assert prompt.sample.trajectory not in [trace.trajectory for trace in traces]


def test_an_unanswered_rollout_is_counted_and_the_others_are_used(tmp_path, data):
    thinks, prompt = tracing.thinks(), prompts()[0]

    def teacher(request):
        reply = thinks(request)
        return 400 if reply.endswith("0") and request.body["messages"] == prompt.messages else reply

    with tracing.endpoints(teacher) as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
    counts = total(tmp_path)
    assert (counts.selected, counts.unanswered, counts.rollouts, counts.holes) == (4, 1, 11, 0)
    assert read_traces(tmp_path / "out")[0].observation == "shows 1"


def test_too_many_holes_end_the_run_and_the_teachers_answers_are_kept(tmp_path, data):
    with (
        tracing.endpoints(judge=lambda _: 503) as server,
        pytest.raises(JudgeError, match="4 of 4 prompts have no decision.*503.*run this again"),
    ):
        traces_of(tmp_path, data, traces_recipe(server.url))
    assert not (tmp_path / "out" / MANIFEST).exists()
    with tracing.endpoints() as other_server:
        trace_set = traces_of(tmp_path, data, traces_recipe(other_server.url))
    assert trace_set.num_traces == 4
    assert requests_to(other_server, TEACHER) == []


def test_an_endpoint_that_fails_from_the_start_is_not_asked_for_every_prompt(tmp_path):
    data = tracing.prepared(tmp_path / "store", training.samples())
    recipe = traces_recipe("http://127.0.0.1:9", turns=None)
    with pytest.raises(
        JudgeError, match="20 of the last 20 prompts have no decision.*ConnectError"
    ):
        traces_of(tmp_path, data, recipe)


def test_a_teacher_without_thoughts_makes_no_traces(tmp_path, data):
    with (
        tracing.endpoints(lambda _: "[0] ~") as server,
        pytest.raises(InputError, match="none of 12 answers of the teacher teacher has a thought"),
    ):
        traces_of(tmp_path, data, traces_recipe(server.url))
    assert requests_to(server, JUDGE) == []


def test_a_threshold_that_no_score_reaches_makes_no_traces(tmp_path, data):
    with (
        tracing.endpoints(judge=lambda _: verdict(2)) as server,
        pytest.raises(InputError, match="0 of 12 scores reach the threshold 4; lower"),
    ):
        traces_of(tmp_path, data, traces_recipe(server.url))


def test_another_threshold_repeats_no_request(tmp_path, data):
    with tracing.endpoints() as server:
        traces_of(tmp_path, data, traces_recipe(server.url))
        num_requests = len(server.requests)
        traces_of(tmp_path, data, traces_recipe(server.url, threshold=5), "stricter")
    assert len(server.requests) == num_requests
    assert read_traces(tmp_path / "stricter") == read_traces(tmp_path / "out")


def test_a_trajectory_has_one_prompt_or_one_for_each_target_turn():
    sample = SAMPLES[2]
    draws = [list(trace_prompts(traces_recipe("", seed=seed), sample)) for seed in range(40)]
    assert {len(draw) for draw in draws} == {1}
    assert {draw[0].turn for draw in draws} == {0, 1, 2, 3, 4}
    assert [prompt.turn for prompt in trace_prompts(traces_recipe("", turns=None), sample)] == [
        *range(5)
    ]
    short_sample = training.one_target(sample)
    assert [
        prompt.turn for prompt in trace_prompts(traces_recipe("", turns=None), short_sample)
    ] == [1]


def answer(text, thought="", *, is_whole=True):
    counts = {"num_prompt_tokens": 1, "num_cached_tokens": 0, "num_tokens": 1}
    return Answer(text=text, thought=thought, is_whole=is_whole, model="m", at=now(), **counts)


@pytest.mark.parametrize(
    "rollout",
    [
        answer("<think>\nso\n</think>\n\nkolu\n[0] ~"),
        answer("so</think>kolu\n[0] ~"),
        answer("\n\nkolu\n[0] ~", "so\n"),
        answer("<predicted_observation>\nkolu\n[0] ~\n</predicted_observation>", "so"),
    ],
)
def test_the_thought_and_observation_of_a_rollout_contain_no_tags(rollout):
    assert usable_rollout(rollout) == ("so", "kolu\n[0] ~")


@pytest.mark.parametrize(
    "rollout",
    [
        answer("kolu"),
        answer("<think></think>kolu"),
        answer("<think>so</think>"),
        answer("kolu", "so", is_whole=False),
        answer("\n\n\nkolu", "so"),
    ],
    ids=["no thought", "an empty thought", "no observation", "cut off", "reads as another"],
)
def test_a_rollout_that_cannot_be_trained_on_is_unusable(rollout):
    assert usable_rollout(rollout) is None
