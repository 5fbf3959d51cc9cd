"""Comparisons of predictors on the same turns: worked by hand, and at random."""

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


def world_with(is_right) -> ScoredWorld:
    """A world with the verdicts `is_right(episode, turn)`."""
    verdicts = tuple(tuple(is_right(e, t) for t in range(4)) for e in range(len(SAMPLES)))
    return ScoredWorld(score=records.world_score(), exact=verdicts)


def random_world(rng, share):
    return world_with(lambda _episode, _turn: rng.random() < share)


def with_unseen(turn):
    """The turn, tagged as unseen if it has an output."""
    extra_tags = ("unseen",) if "output" in turn.tags else ()
    return turn.model_copy(update={"tags": (*turn.tags, *extra_tags)})


COMPARISON = Comparison(SAMPLES, RECIPE)


def test_equal_verdicts_give_a_gain_of_exactly_zero():
    rng = random.Random(0)
    world = random_world(rng, 0.5)
    gain = COMPARISON.gain(world, world)
    assert (gain.mean, gain.low, gain.high, gain.num) == (0, 0, 0, 240)
    assert not gain.excludes_zero


def test_one_more_right_turn_per_episode_gives_an_exact_gain():
    rng = random.Random(0)
    is_hard = [rng.random() < 0.5 for _ in SAMPLES]
    before = world_with(lambda episode, turn: turn != 0 and is_hard[episode])
    after = world_with(lambda episode, turn: turn == 0 or is_hard[episode])
    gain = COMPARISON.gain(after, before)
    assert (gain.mean, gain.low, gain.high) == (0.25, 0.25, 0.25)


def test_the_interval_of_a_random_one_percent_gain_includes_zero():
    rng = random.Random(1)
    gain = COMPARISON.gain(random_world(rng, 0.81), random_world(rng, 0.8))
    assert not gain.excludes_zero


def test_a_gain_can_be_limited_to_turns_with_a_tag():
    before, after = world_with(lambda *_: False), world_with(lambda _, turn: turn % 2 == 1)
    assert COMPARISON.gain(after, before).mean == 0.5
    assert (
        COMPARISON.gain(after, before, has_tag("history")).mean,
        COMPARISON.gain(after, before).num,
    ) == (1, 240)


def test_a_turn_without_a_verdict_on_one_side_is_a_hole():
    partial_world = world_with(lambda _, turn: None if turn == 0 else True)
    gain = COMPARISON.gain(world_with(lambda *_: True), partial_world)
    assert (gain.num, gain.holes) == (180, 60)


def test_a_gain_without_a_turn_answered_by_both_is_an_error():
    first, second = (world_with(lambda _, t, even=even: t % 2 == even or None) for even in (0, 1))
    with pytest.raises(EngineError, match="no held-out turn was answered by both"):
        COMPARISON.gain(first, second)


def test_the_smallest_lead_is_the_minimum_over_baselines_and_turn_groups():
    samples = [
        sample.model_copy(update={"turns": tuple(with_unseen(turn) for turn in sample.turns)})
        for sample in SAMPLES
    ]
    comparison = Comparison(samples, RECIPE)
    best = world_with(lambda *_: True)
    blind, forgetful = world_with(lambda *_: False), world_with(lambda _, turn: turn % 2 == 1)
    assert comparison.smallest_lead(best, [blind]).mean == 1
    assert comparison.smallest_lead(best, [blind, forgetful]).mean == 0


def with_values(world, **values):
    rows = {name: ((value,) * 4,) * len(SAMPLES) for name, value in values.items()}
    return world.model_copy(update={"values": rows})


def test_a_lead_contains_exact_match_and_the_shared_metrics():
    best = with_values(world_with(lambda *_: True), token_f1=0.75, rouge_l=1.0)
    blind = with_values(world_with(lambda *_: False), token_f1=0.25, rule=0.0)
    lead = COMPARISON.leads(best, {"blind": blind})["blind"]
    assert (lead.exact_match.mean, lead.metrics.keys()) == (1, {"token_f1"})
    assert (lead.metrics["token_f1"].low, lead.of("token_f1").num) == (0.5, 240)


def test_a_baseline_without_a_comparable_turn_has_no_lead():
    first, second = (world_with(lambda _, t, even=even: t % 2 == even or None) for even in (0, 1))
    assert COMPARISON.leads(first, {"second": second}) == {}
    assert COMPARISON.gain_over("second", first, second) is None


def test_a_gain_contains_paired_gains_by_tag_and_by_kind():
    before = with_values(world_with(lambda *_: False), token_f1=0.5)
    after = with_values(world_with(lambda _, turn: turn % 2 == 1), token_f1=0.5)
    gain = COMPARISON.gain_over("cpt", after, before)
    assert (gain.over, gain.exact_match.mean) == ("cpt", 0.5)
    assert {tag: estimate.mean for tag, estimate in gain.by_tag.items()} == {
        **dict.fromkeys(["cat", "history", "output"], 1),
        "write": 0,
    }
    kinds = {kind: group.exact_match.low for kind, group in gain.by_kind.items()}
    assert kinds == {"read": 1, "write": 0}
    assert gain.by_kind["read"].metrics["token_f1"].mean == 0


def test_groups_without_turns_are_left_out_of_the_smallest_lead():
    samples = [
        sample.model_copy(
            update={"turns": tuple(turn.model_copy(update={"tags": ()}) for turn in sample.turns)}
        )
        for sample in SAMPLES
    ]
    forgetful = world_with(lambda _, turn: turn % 2 == 1)
    lead = Comparison(samples, RECIPE).smallest_lead(world_with(lambda *_: True), [forgetful])
    assert (lead.mean, lead.num) == (0.5, 240)


def test_a_group_without_answered_turns_is_left_out_of_the_smallest_lead():
    first_turns = [sample.turns[0].model_copy(update={"tags": ("unseen",)}) for sample in SAMPLES]
    samples = [
        sample.model_copy(update={"turns": (turn, *sample.turns[1:])})
        for sample, turn in zip(SAMPLES, first_turns, strict=True)
    ]
    partial_world = world_with(lambda _, turn: None if turn == 0 else False)
    lead = Comparison(samples, RECIPE).smallest_lead(world_with(lambda *_: True), [partial_world])
    assert (lead.mean, lead.num, lead.holes) == (1, 180, 60)


def test_a_comparison_uses_the_recipes_number_of_episodes():
    comparison = Comparison(SAMPLES, EvaluateRecipe(num_episodes=3, num_resamples=50))
    world = ScoredWorld(score=records.world_score(), exact=((True,) * 4,) * 3)
    assert comparison.gain(world, world).num == 12
