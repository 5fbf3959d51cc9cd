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
    """The second of each two turns shows a file that the first one wrote, with an unseen word."""
    sample = records.sample(seed, num_turns=num_turns)
    turns = [
        turn.model_copy(update={"tags": (*turn.tags, "unseen")}) if "output" in turn.tags else turn
        for turn in sample.turns
    ]
    return sample.model_copy(update={"turns": tuple(turns)})


def truths(samples):
    """The recorded observations, by action."""
    return {turn.action: turn.observation for sample in samples for turn in sample.turns}


def asked(engine):
    return [request.messages for request in engine.requests]


def score(answer, samples, recipe=RECIPE, tick=ignore_progress):
    engine = FakeEngine(answer)
    return asyncio.run(evaluate_world(engine, samples, recipe, tick)).score, engine


def knowing(samples, **other):
    """A model that knows every truth but these: by the first word of the action."""
    known = truths(samples)

    def answer(messages):
        action = messages[-1]["content"]
        return other.get(action.split()[0], known[action])

    return answer


SAMPLES = [held_out(seed) for seed in range(4)]


def test_a_model_that_knows_the_truth_scores_1():
    found, _ = score(knowing(SAMPLES), SAMPLES)
    history, unseen = found.by_tag["history"], found.by_tag["unseen"]
    everything = found.exact_match, history, unseen, found.metrics["rule"]
    assert [each.mean for each in everything] == [1, 1, 1, 1]
    assert [each.num for each in everything] == [16, 8, 8, 16]


def test_a_model_without_memory_is_right_only_where_no_history_is_needed():
    found, _ = score(knowing(SAMPLES, cat="[0] ~"), SAMPLES)
    assert (found.exact_match.mean, found.by_tag["history"].mean) == (0.5, 0)
    means = {tag: each.mean for tag, each in found.by_tag.items()}
    assert means == {"cat": 0, "history": 0, "output": 0, "unseen": 0, "write": 1}


def test_the_rule_ignores_trailing_spaces_and_exact_match_does_not():
    known = truths(SAMPLES)
    found, _ = score(lambda m: known[m[-1]["content"]].replace("\n", " \n"), SAMPLES)
    assert (found.exact_match.mean, found.metrics["rule"].mean) == (0.5, 1)


def test_every_turn_is_predicted_from_the_recorded_history():
    _, engine = score(knowing(SAMPLES, cat="wrong"), SAMPLES[:1])
    longest = max(asked(engine), key=len)
    shown = [message["content"] for message in longest if message["role"] == "assistant"]
    assert shown == [turn.observation for turn in SAMPLES[0].turns[:3]]


def test_every_request_has_temperature_zero():
    _, engine = score(knowing(SAMPLES), SAMPLES)
    assert {request.sampling.temperature for request in engine.requests} == {0}


def test_an_engine_failure_leaves_a_hole_and_is_no_wrong_answer():
    answer = knowing(SAMPLES, echo=EngineError("as the test wants it"))
    found, _ = score(answer, SAMPLES)
    assert (found.exact_match.mean, found.exact_match.num, found.exact_match.holes) == (1, 8, 8)
    assert "write" not in found.by_tag


@pytest.mark.parametrize(
    "own",
    [EngineError("too long", kind="cut-off"), EngineError("empty", kind="unparsable"), "<think>"],
    ids=["cut off", "empty", "no observation"],
)
def test_an_answer_without_an_observation_counts_as_wrong(own):
    found, _ = score(knowing(SAMPLES, cat=own), SAMPLES)
    assert (found.exact_match.mean, found.exact_match.holes) == (0.5, 0)


def test_an_evaluation_without_any_answer_is_an_error():
    with pytest.raises(EngineError, match="none of 16 turns: as the test wants it"):
        score(lambda _: EngineError("as the test wants it"), SAMPLES)


def test_free_running_episodes_without_a_verdict_are_refused():
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    known, questions = truths(SAMPLES), []

    def answer(messages):
        questions.append(messages)
        is_free = len(questions) > len(SAMPLES[0].turns)
        return EngineError("lost") if is_free else known[messages[-1]["content"]]

    with pytest.raises(InputError, match="no held-out turn at all got a verdict"):
        score(answer, SAMPLES[:1], recipe)


def test_a_tag_without_turns_has_no_score():
    samples = [records.sample(0)]
    found, _ = score(knowing(samples), samples)
    assert found.by_tag.keys() == {"cat", "history", "output", "write"}


def test_scores_by_kind_contain_exact_match_and_metrics():
    found, _ = score(knowing(SAMPLES, cat="[0] ~"), SAMPLES)
    reads, writes = found.by_kind["read"], found.by_kind["write"]
    assert [*found.by_kind] == ["read", "write"]
    assert [each.exact_match.num for each in (reads, writes)] == [8, 8]
    assert [each.exact_match.mean for each in (reads, writes)] == [0, 1]
    assert [each.metrics["token_f1"].mean for each in (reads, writes)] == [8 / 9, 1]


def test_the_score_without_start_leaves_out_reads_of_the_initial_state():
    first, *others = SAMPLES[0].turns[1::2]
    of_start = first.model_copy(update={"tags": ("output",)})
    sample = SAMPLES[0].model_copy(update={"turns": (of_start, *others)})
    found, _ = score(knowing(SAMPLES), [sample])
    assert (found.exact_match.num, found.without_start.num) == (2, 1)
    reads = sample.model_copy(update={"turns": (of_start,)})
    assert score(knowing(SAMPLES), [reads])[0].without_start is None


def test_a_turn_with_an_unrecognized_action_has_kind_unknown():
    turns = [turn.model_copy(update={"action": "frobnicate"}) for turn in SAMPLES[0].turns]
    found, _ = score(lambda _: "a", [SAMPLES[0].model_copy(update={"turns": tuple(turns)})])
    assert [*found.by_kind] == ["unknown"]


def test_scores_by_domain_exist_only_for_several_domains():
    samples = [SAMPLES[0], SAMPLES[1].model_copy(update={"domain": "text"})]
    found, _ = score(knowing(SAMPLES), samples)
    assert [*found.by_domain] == ["shell", "text"]
    assert "rule" not in found.by_domain["text"].metrics
    assert score(knowing(SAMPLES), SAMPLES)[0].by_domain == {}


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
    found, _ = score(knowing(SAMPLES, cat=failure), SAMPLES)
    assert (found.answers.num, found.answers.missing, found.answers.cut_off) == answers
    figures = (found.exact_match, *found.metrics.values())
    assert {figure.mean for figure in figures} == {mean}


def test_an_unparsable_answer_scores_zero_in_every_metric():
    turns = [turn.model_copy(update={"observation": ""}) for turn in SAMPLES[0].turns]
    silent = SAMPLES[0].model_copy(update={"domain": "text", "turns": tuple(turns)})
    found, _ = score(lambda _: EngineError("empty", kind="unparsable"), [silent])
    assert {figure.mean for figure in found.metrics.values()} == {0}


def test_a_domain_without_rules_has_no_rule_metric():
    samples = [sample.model_copy(update={"domain": "text"}) for sample in SAMPLES]
    found, _ = score(knowing(samples), samples)
    assert found.exact_match.mean == 1
    assert found.metrics.keys() == {"normalised", "rouge_l", "token_f1"}


def test_the_rule_metric_covers_only_turns_of_domains_with_rules():
    samples = [SAMPLES[0], SAMPLES[1].model_copy(update={"domain": "text"})]
    found, _ = score(knowing(samples), samples)
    rule = found.metrics["rule"]
    assert (rule.mean, rule.num, rule.holes) == (1, 4, 4)


def test_an_unparsable_answer_is_wrong_even_for_an_empty_observation():
    turns = [turn.model_copy(update={"observation": ""}) for turn in SAMPLES[0].turns]
    silent = SAMPLES[0].model_copy(update={"domain": "text", "turns": tuple(turns)})
    found, _ = score(lambda _: EngineError("empty", kind="unparsable"), [silent])
    assert (found.exact_match.mean, found.exact_match.holes) == (0, 0)


def test_turns_that_are_not_targets_are_not_evaluated():
    turns = [held_out().turns[0].model_copy(update={"target": False}), *held_out().turns[1:]]
    sample = held_out().model_copy(update={"turns": tuple(turns)})
    found, engine = score(knowing(SAMPLES), [sample])
    assert found.exact_match.num == len(engine.requests) == 3


def test_a_free_run_reads_its_own_observations():
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    found, engine = score(knowing(SAMPLES, echo="mine\n[0] ~"), SAMPLES[:1], recipe)
    longest = asked(engine)[-1]
    shown = [message["content"] for message in longest if message["role"] == "assistant"]
    assert shown[0] == shown[2] == "mine\n[0] ~"
    assert (found.free_running.mean, found.free_running.num) == (0.5, 4)


@pytest.mark.parametrize(
    ("failure", "mean", "num", "holes"),
    [(EngineError("gone"), 1, 1, 3), ("<think>", 0.25, 4, 0)],
    ids=["engine", "own"],
)
def test_a_free_run_ends_at_a_turn_without_an_observation(failure, mean, num, holes):
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    known, stop, num_teacher_forced = truths(SAMPLES), SAMPLES[0].turns[1].action, 4
    seen = []

    def answer(messages):
        action = messages[-1]["content"]
        seen.append(action)
        return failure if len(seen) > num_teacher_forced and action == stop else known[action]

    free = score(answer, SAMPLES[:1], recipe)[0].free_running
    assert (free.mean, free.num, free.holes) == (mean, num, holes)


def test_a_free_run_keeps_but_does_not_judge_a_blank_turn_that_is_no_target():
    blank = SAMPLES[0].turns[1].model_copy(update={"observation": " ", "target": False})
    turns = (SAMPLES[0].turns[0], blank, *SAMPLES[0].turns[2:])
    sample = SAMPLES[0].model_copy(update={"turns": turns})
    recipe = RECIPE.model_copy(update={"num_free_running": 1})
    found, engine = score(knowing(SAMPLES), [sample], recipe)
    assert (found.free_running.mean, found.free_running.num) == (1, 3)
    assert {"role": "assistant", "content": " "} in asked(engine)[-1]


def test_the_episodes_with_an_answer_are_counted():
    found, _ = score(knowing(SAMPLES), SAMPLES)
    assert found.answers.num_episodes == len(SAMPLES)


def test_without_free_running_episodes_the_free_running_score_is_none():
    assert score(knowing(SAMPLES), SAMPLES)[0].free_running is None


def test_progress_is_reported_to_its_end():
    ticks = []
    recipe = RECIPE.model_copy(update={"num_free_running": 2})
    score(knowing(SAMPLES), SAMPLES, recipe, lambda done, total: ticks.append((done, total)))
    assert ticks == [(done, 24) for done in range(1, 25)]


def test_the_same_episodes_are_chosen_for_a_seed():
    samples = [held_out(seed) for seed in range(20)]
    assert choose(samples, 5, 0) == choose(samples, 5, 0) != choose(samples, 5, 1)
    assert len(choose(samples, 50, 0)) == 20
