"""Predictors on the same turns: worked by hand, and by chance."""

import random

import pytest

from agentworld.errors import EngineError
from agentworld.evaluate.compare import Comparison
from agentworld.evaluate.judging import has_tag
from agentworld.evaluate.world import ScoredWorld
from agentworld.recipes.serve import EvaluateRecipe
from make import records

RECIPE = EvaluateRecipe(num_episodes=100, num_resamples=400)
SAMPLES = [records.sample(seed, num_turns=4) for seed in range(60)]
"""The second of each two turns needs memory."""


def scored(right) -> ScoredWorld:
    """By episode and turn, whether it was right."""
    verdicts = tuple(tuple(right(e, t) for t in range(4)) for e in range(len(SAMPLES)))
    return ScoredWorld(score=records.world_score(), exact=verdicts)


def by_chance(rng, share):
    return scored(lambda _episode, _turn: rng.random() < share)


def with_unseen(turn):
    """A turn that shows something shows what no training saw."""
    more = ("unseen",) if "output" in turn.tags else ()
    return turn.model_copy(update={"tags": (*turn.tags, *more)})


BY = Comparison(SAMPLES, RECIPE)


def test_equal_verdicts_give_a_gain_of_exactly_zero():
    rng = random.Random(0)
    same = by_chance(rng, 0.5)
    found = BY.gain(same, same)
    assert (found.mean, found.low, found.high, found.num) == (0, 0, 0, 240)
    assert not found.excludes_zero


def test_one_more_right_turn_per_episode_gives_an_exact_gain():
    rng = random.Random(0)
    hard = [rng.random() < 0.5 for _ in SAMPLES]
    before = scored(lambda episode, turn: turn != 0 and hard[episode])
    after = scored(lambda episode, turn: turn == 0 or hard[episode])
    found = BY.gain(after, before)
    assert (found.mean, found.low, found.high) == (0.25, 0.25, 0.25)


def test_the_interval_of_a_random_one_percent_gain_includes_zero():
    rng = random.Random(1)
    found = BY.gain(by_chance(rng, 0.81), by_chance(rng, 0.8))
    assert not found.excludes_zero


def test_a_gain_can_be_limited_to_turns_with_a_tag():
    before, after = scored(lambda *_: False), scored(lambda _, turn: turn % 2 == 1)
    assert BY.gain(after, before).mean == 0.5
    assert (BY.gain(after, before, has_tag("history")).mean, BY.gain(after, before).num) == (1, 240)


def test_a_turn_without_a_verdict_on_one_side_is_a_hole():
    asked_less = scored(lambda _, turn: None if turn == 0 else True)
    found = BY.gain(scored(lambda *_: True), asked_less)
    assert (found.num, found.holes) == (180, 60)


def test_a_gain_without_a_turn_answered_by_both_is_an_error():
    first, second = (scored(lambda _, t, even=even: t % 2 == even or None) for even in (0, 1))
    with pytest.raises(EngineError, match="no held-out turn was answered by both"):
        BY.gain(first, second)


def test_the_smallest_lead_is_the_minimum_over_baselines_and_turn_groups():
    samples = [
        sample.model_copy(update={"turns": tuple(with_unseen(turn) for turn in sample.turns)})
        for sample in SAMPLES
    ]
    by = Comparison(samples, RECIPE)
    best = scored(lambda *_: True)
    blind, forgetful = scored(lambda *_: False), scored(lambda _, turn: turn % 2 == 1)
    assert by.smallest_lead(best, [blind]).mean == 1
    assert by.smallest_lead(best, [blind, forgetful]).mean == 0


def with_values(scored, **values):
    rows = {name: ((value,) * 4,) * len(SAMPLES) for name, value in values.items()}
    return scored.model_copy(update={"values": rows})


def test_a_lead_contains_exact_match_and_the_shared_metrics():
    best = with_values(scored(lambda *_: True), token_f1=0.75, rouge_l=1.0)
    blind = with_values(scored(lambda *_: False), token_f1=0.25, rule=0.0)
    lead = BY.leads(best, {"blind": blind})["blind"]
    assert (lead.exact_match.mean, lead.metrics.keys()) == (1, {"token_f1"})
    assert (lead.metrics["token_f1"].low, lead.of("token_f1").num) == (0.5, 240)


def test_a_baseline_without_a_comparable_turn_has_no_lead():
    first, second = (scored(lambda _, t, even=even: t % 2 == even or None) for even in (0, 1))
    assert BY.leads(first, {"second": second}) == {}
    assert BY.gain_over("second", first, second) is None


def test_a_gain_contains_paired_gains_by_tag_and_by_kind():
    before = with_values(scored(lambda *_: False), token_f1=0.5)
    after = with_values(scored(lambda _, turn: turn % 2 == 1), token_f1=0.5)
    gain = BY.gain_over("cpt", after, before)
    assert (gain.over, gain.exact_match.mean) == ("cpt", 0.5)
    assert {tag: each.mean for tag, each in gain.by_tag.items()} == {
        **dict.fromkeys(["cat", "history", "output"], 1),
        "write": 0,
    }
    kinds = {kind: each.exact_match.low for kind, each in gain.by_kind.items()}
    assert kinds == {"read": 1, "write": 0}
    assert gain.by_kind["read"].metrics["token_f1"].mean == 0


def test_groups_without_turns_are_left_out_of_the_smallest_lead():
    samples = [
        sample.model_copy(
            update={"turns": tuple(each.model_copy(update={"tags": ()}) for each in sample.turns)}
        )
        for sample in SAMPLES
    ]
    forgetful = scored(lambda _, turn: turn % 2 == 1)
    lead = Comparison(samples, RECIPE).smallest_lead(scored(lambda *_: True), [forgetful])
    assert (lead.mean, lead.num) == (0.5, 240)


def test_a_group_without_answered_turns_is_left_out_of_the_smallest_lead():
    first = [each.turns[0].model_copy(update={"tags": ("unseen",)}) for each in SAMPLES]
    samples = [
        sample.model_copy(update={"turns": (turn, *sample.turns[1:])})
        for sample, turn in zip(SAMPLES, first, strict=True)
    ]
    holes = scored(lambda _, turn: None if turn == 0 else False)
    lead = Comparison(samples, RECIPE).smallest_lead(scored(lambda *_: True), [holes])
    assert (lead.mean, lead.num, lead.holes) == (1, 180, 60)


def test_a_comparison_uses_the_recipes_number_of_episodes():
    few = Comparison(SAMPLES, EvaluateRecipe(num_episodes=3, num_resamples=50))
    three = ScoredWorld(score=records.world_score(), exact=((True,) * 4,) * 3)
    assert few.gain(three, three).num == 12
