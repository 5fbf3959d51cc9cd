import asyncio

import pytest

from agentworld.engine.fake import FakeEngine
from agentworld.errors import EngineError, InputError
from agentworld.evaluate.world import choose, evaluate_world
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.progress import ignore_progress
from make import records

RECIPE = EvaluateRecipe(num_episodes=10, num_free_running=0, num_resamples=100)


def held_out(seed=0, num_turns=4):
    """In each pair of turns the second shows the file that the first wrote, with an unseen word."""
    sample = records.sample(seed, num_turns=num_turns)
    turns = [
        turn.model_copy(update={"tags": (*turn.tags, "unseen")}) if "output" in turn.tags else turn
        for turn in sample.turns
    ]
    return sample.model_copy(update={"turns": tuple(turns)})


def truths(samples):
    """The recorded observations, by action."""
    return {turn.action: turn.observation for sample in samples for turn in sample.turns}


def requested_messages(engine):
    return [request.messages for request in engine.requests]


def score(answer, samples, recipe=RECIPE, tick=ignore_progress):
    engine = FakeEngine(answer)
    return asyncio.run(evaluate_world(engine, samples, recipe, tick)).score, engine


def informed_model(samples, **exceptions):
    """A model that knows the truth, except for actions with these first words."""
    observations = truths(samples)

    def answer(messages):
        action = messages[-1]["content"]
        return exceptions.get(action.split()[0], observations[action])

    return answer


SAMPLES = [held_out(seed) for seed in range(4)]


def test_a_model_that_knows_the_truth_scores_1():
    result, _ = score(informed_model(SAMPLES), SAMPLES)
    history, unseen = result.by_tag["history"], result.by_tag["unseen"]
    estimates = result.exact_match, history, unseen, result.metrics["rule"]
    assert [estimate.mean for estimate in estimates] == [1, 1, 1, 1]
    assert [estimate.num for estimate in estimates] == [16, 8, 8, 16]


def test_a_model_without_memory_is_right_only_where_no_history_is_needed():
    result, _ = score(informed_model(SAMPLES, cat="[0] ~"), SAMPLES)
    assert (result.exact_match.mean, result.by_tag["history"].mean) == (0.5, 0)
    means = {tag: estimate.mean for tag, estimate in result.by_tag.items()}
    assert means == {"cat": 0, "history": 0, "output": 0, "unseen": 0, "write": 1}


def test_the_rule_ignores_trailing_spaces_and_exact_match_does_not():
    observations = truths(SAMPLES)
    result, _ = score(lambda m: observations[m[-1]["content"]].replace("\n", " \n"), SAMPLES)
    assert (result.exact_match.mean, result.metrics["rule"].mean) == (0.5, 1)


def test_every_turn_is_predicted_from_the_recorded_history():
    _, engine = score(informed_model(SAMPLES, cat="wrong"), SAMPLES[:1])
    messages = max(requested_messages(engine), key=len)
    observations = [message["content"] for message in messages if message["role"] == "assistant"]
    assert observations == [turn.observation for turn in SAMPLES[0].turns[:3]]


def test_every_request_has_temperature_zero():
    _, engine = score(informed_model(SAMPLES), SAMPLES)
    assert {request.sampling.temperature for request in engine.requests} == {0}


def test_an_engine_failure_leaves_a_hole_and_is_no_wrong_answer():
    answer = informed_model(SAMPLES, echo=EngineError("as the test wants it"))
    result, _ = score(answer, SAMPLES)
    assert (result.exact_match.mean, result.exact_match.num, result.exact_match.holes) == (1, 8, 8)
    assert "write" not in result.by_tag


@pytest.mark.parametrize(
    "answer",
    [EngineError("too long", kind="cut-off"), EngineError("empty", kind="unparsable"), "<think>"],
    ids=["cut off", "empty", "no observation"],
)
def test_an_answer_without_an_observation_counts_as_wrong(answer):
    result, _ = score(informed_model(SAMPLES, cat=answer), SAMPLES)
    assert (result.exact_match.mean, result.exact_match.holes) == (0.5, 0)


def test_an_evaluation_without_any_answer_is_an_error():
    with pytest.raises(EngineError, match="none of 16 turns: as the test wants it"):
        score(lambda _: EngineError("as the test wants it"), SAMPLES)


def test_free_running_episodes_without_a_verdict_are_refused():
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    observations, requests = truths(SAMPLES), []

    def answer(messages):
        requests.append(messages)
        is_free = len(requests) > len(SAMPLES[0].turns)
        return EngineError("lost") if is_free else observations[messages[-1]["content"]]

    with pytest.raises(InputError, match="no held-out turn at all got a verdict"):
        score(answer, SAMPLES[:1], recipe)


def test_a_tag_without_turns_has_no_score():
    samples = [records.sample(0)]
    result, _ = score(informed_model(samples), samples)
    assert result.by_tag.keys() == {"cat", "history", "output", "write"}


def test_scores_by_kind_contain_exact_match_and_metrics():
    result, _ = score(informed_model(SAMPLES, cat="[0] ~"), SAMPLES)
    reads, writes = result.by_kind["read"], result.by_kind["write"]
    assert [*result.by_kind] == ["read", "write"]
    assert [group.exact_match.num for group in (reads, writes)] == [8, 8]
    assert [group.exact_match.mean for group in (reads, writes)] == [0, 1]
    assert [group.metrics["token_f1"].mean for group in (reads, writes)] == [8 / 9, 1]


def test_the_score_without_start_leaves_out_reads_of_the_initial_state():
    first_read, *other_reads = SAMPLES[0].turns[1::2]
    start_read = first_read.model_copy(update={"tags": ("output",)})
    sample = SAMPLES[0].model_copy(update={"turns": (start_read, *other_reads)})
    result, _ = score(informed_model(SAMPLES), [sample])
    assert (result.exact_match.num, result.without_start.num) == (2, 1)
    reads = sample.model_copy(update={"turns": (start_read,)})
    assert score(informed_model(SAMPLES), [reads])[0].without_start is None


def test_a_turn_with_an_unrecognized_action_has_kind_unknown():
    turns = [turn.model_copy(update={"action": "frobnicate"}) for turn in SAMPLES[0].turns]
    result, _ = score(lambda _: "a", [SAMPLES[0].model_copy(update={"turns": tuple(turns)})])
    assert [*result.by_kind] == ["unknown"]


def test_scores_by_domain_exist_only_for_several_domains():
    samples = [SAMPLES[0], SAMPLES[1].model_copy(update={"domain": "text"})]
    result, _ = score(informed_model(SAMPLES), samples)
    assert [*result.by_domain] == ["shell", "text"]
    assert "rule" not in result.by_domain["text"].metrics
    assert score(informed_model(SAMPLES), SAMPLES)[0].by_domain == {}


@pytest.mark.parametrize(
    ("failure", "answers", "mean"),
    [
        (EngineError("gone"), (16, 8, 0), 1),
        (EngineError("too long", kind="cut-off"), (16, 0, 8), 0.5),
    ],
    ids=["missing", "cut off"],
)
def test_a_missing_answer_is_left_out_of_means_and_a_cut_off_answer_is_wrong(
    failure, answers, mean
):
    result, _ = score(informed_model(SAMPLES, cat=failure), SAMPLES)
    assert (result.answers.num, result.answers.missing, result.answers.cut_off) == answers
    figures = (result.exact_match, *result.metrics.values())
    assert {figure.mean for figure in figures} == {mean}


def test_an_unparsable_answer_scores_zero_in_every_metric():
    turns = [turn.model_copy(update={"observation": ""}) for turn in SAMPLES[0].turns]
    sample = SAMPLES[0].model_copy(update={"domain": "text", "turns": tuple(turns)})
    result, _ = score(lambda _: EngineError("empty", kind="unparsable"), [sample])
    assert {figure.mean for figure in result.metrics.values()} == {0}


def test_a_domain_without_rules_has_no_rule_metric():
    samples = [sample.model_copy(update={"domain": "text"}) for sample in SAMPLES]
    result, _ = score(informed_model(samples), samples)
    assert result.exact_match.mean == 1
    assert result.metrics.keys() == {"normalised", "rouge_l", "token_f1"}


def test_the_rule_metric_covers_only_turns_of_domains_with_rules():
    samples = [SAMPLES[0], SAMPLES[1].model_copy(update={"domain": "text"})]
    result, _ = score(informed_model(samples), samples)
    rule = result.metrics["rule"]
    assert (rule.mean, rule.num, rule.holes) == (1, 4, 4)


def test_an_unparsable_answer_is_wrong_even_for_an_empty_observation():
    turns = [turn.model_copy(update={"observation": ""}) for turn in SAMPLES[0].turns]
    sample = SAMPLES[0].model_copy(update={"domain": "text", "turns": tuple(turns)})
    result, _ = score(lambda _: EngineError("empty", kind="unparsable"), [sample])
    assert (result.exact_match.mean, result.exact_match.holes) == (0, 0)


def test_turns_that_are_not_targets_are_not_evaluated():
    turns = [held_out().turns[0].model_copy(update={"target": False}), *held_out().turns[1:]]
    sample = held_out().model_copy(update={"turns": tuple(turns)})
    result, engine = score(informed_model(SAMPLES), [sample])
    assert result.exact_match.num == len(engine.requests) == 3


def test_a_free_run_reads_its_own_observations():
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    result, engine = score(informed_model(SAMPLES, echo="mine\n[0] ~"), SAMPLES[:1], recipe)
    messages = requested_messages(engine)[-1]
    observations = [message["content"] for message in messages if message["role"] == "assistant"]
    assert observations[0] == observations[2] == "mine\n[0] ~"
    assert (result.free_running.mean, result.free_running.num) == (0.5, 4)


@pytest.mark.parametrize(
    ("failure", "mean", "num", "holes"),
    [(EngineError("gone"), 1, 1, 3), ("<think>", 0.25, 4, 0)],
    ids=["engine", "own"],
)
def test_a_free_run_ends_at_a_turn_without_an_observation(failure, mean, num, holes):
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    truth, stop, num_teacher_forced = truths(SAMPLES), SAMPLES[0].turns[1].action, 4
    actions = []

    def answer(messages):
        action = messages[-1]["content"]
        actions.append(action)
        return failure if len(actions) > num_teacher_forced and action == stop else truth[action]

    estimate = score(answer, SAMPLES[:1], recipe)[0].free_running
    assert (estimate.mean, estimate.num, estimate.holes) == (mean, num, holes)


def test_a_free_run_keeps_but_does_not_judge_a_blank_turn_that_is_no_target():
    blank_turn = SAMPLES[0].turns[1].model_copy(update={"observation": " ", "target": False})
    turns = (SAMPLES[0].turns[0], blank_turn, *SAMPLES[0].turns[2:])
    sample = SAMPLES[0].model_copy(update={"turns": turns})
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    result, engine = score(informed_model(SAMPLES), [sample], recipe)
    assert (result.free_running.mean, result.free_running.num) == (1, 3)
    assert {"role": "assistant", "content": " "} in requested_messages(engine)[-1]


def test_the_episodes_with_an_answer_are_counted():
    result, _ = score(informed_model(SAMPLES), SAMPLES)
    assert result.answers.num_episodes == len(SAMPLES)


def test_without_free_running_episodes_the_free_running_score_is_none():
    assert score(informed_model(SAMPLES), SAMPLES)[0].free_running is None


def test_progress_is_reported_to_its_end():
    ticks = []
    recipe = RECIPE.model_copy(update={"num_free_running": 2})
    score(informed_model(SAMPLES), SAMPLES, recipe, lambda done, total: ticks.append((done, total)))
    assert ticks == [(done, 24) for done in range(1, 25)]


def test_the_same_episodes_are_chosen_for_a_seed():
    samples = [held_out(seed) for seed in range(20)]
    assert choose(samples, 5, 0) == choose(samples, 5, 0) != choose(samples, 5, 1)
    assert len(choose(samples, 50, 0)) == 20
