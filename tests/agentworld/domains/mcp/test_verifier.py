"""The rules tolerate only differences from run to run, as measured on a shop's turns."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.base import domain_of, is_match, verdict_of
from agentworld.domains.mcp.comparison import canonical, is_same, mask_volatile
from make import shop_episodes

MCP = domain_of("mcp")
EPISODES = [shop_episodes.episode(seed) for seed in range(60)]
TRUTHS = [turn.observation for episode in EPISODES for turn in episode.turns]
JSON_TRUTHS = [truth for truth in TRUTHS if truth.startswith("{")]
ERRORS = [truth for truth in TRUTHS if truth.startswith("Error: ")]


def change_leaf(value, change):
    """The same value with a change of its last leaf that is not a time."""
    if isinstance(value, list):
        return [*value[:-1], change_leaf(value[-1], change)] if value else value
    if isinstance(value, dict):
        keys = [key for key in value if key != "placed_at"]
        return {**value, keys[-1]: change_leaf(value[keys[-1]], change)} if keys else value
    return change(value)


def other_value(truth):
    return json.dumps(
        change_leaf(json.loads(truth), lambda leaf: leaf + 1 if type(leaf) is int else f"{leaf}x")
    )


def other_key(truth):
    first_item, *other_items = json.loads(truth).items()
    return json.dumps(dict([(f"{first_item[0]}s", first_item[1]), *other_items]))


def without_key(truth):
    _, *other_items = json.loads(truth).items()
    return json.dumps(dict(other_items))


def changed_list(truth, change):
    ((key, values),) = json.loads(truth).items()
    return json.dumps({key: change(values)})


LISTS = [truth for truth in JSON_TRUTHS if re.match(r'\{"\w+":\[\{.*\},\{', truth)]
WRONG_CHANGES = {
    "value": (other_value, [truth for truth in JSON_TRUTHS if "[]" not in truth]),
    "key": (other_key, JSON_TRUTHS),
    "missing key": (without_key, JSON_TRUTHS),
    "order": (lambda truth: changed_list(truth, lambda values: values[::-1]), LISTS),
    "missing element": (lambda truth: changed_list(truth, lambda values: values[1:]), LISTS),
    "error for success": (lambda _: ERRORS[0], JSON_TRUTHS),
    "success for error": (lambda _: JSON_TRUTHS[0], ERRORS),
    "another error": (lambda truth: f"{truth}x", ERRORS),
    "nothing": (lambda _: "", TRUTHS),
    "prose around it": (lambda truth: f"Here it is: {truth}", TRUTHS),
}


@pytest.mark.parametrize("kind", list(WRONG_CHANGES))
def test_every_wrong_change_of_an_observation_fails(kind):
    change, truths = WRONG_CHANGES[kind]
    assert len(truths) > 20
    assert [verdict_of(MCP, change(truth), truth) for truth in truths] == [False] * len(truths)


@pytest.mark.compute
def test_a_differing_stale_result_or_copy_of_the_previous_turn_fails():
    verdicts = {"stale": [], "copied": []}
    for episode in EPISODES:
        for previous, turn in zip(episode.turns, episode.turns[1:], strict=False):
            is_different = mask_volatile(previous.observation) != mask_volatile(turn.observation)
            if is_different:
                verdicts["copied"].append(verdict_of(MCP, previous.observation, turn.observation))
            stale = shop_episodes.answer(shop_episodes.Shop(previous.before), turn.action)
            if mask_volatile(stale) != mask_volatile(turn.observation):
                verdicts["stale"].append(verdict_of(MCP, stale, turn.observation))
    assert all(len(kind_verdicts) > 20 for kind_verdicts in verdicts.values())
    assert not any(verdict for kind_verdicts in verdicts.values() for verdict in kind_verdicts)


def test_a_second_recording_passes_and_every_turn_has_a_verdict():
    for episode in EPISODES:
        observations = shop_episodes.replay(episode)
        for turn, observation in zip(episode.turns, observations, strict=True):
            assert verdict_of(MCP, observation, turn.observation) is True
    assert any("placed_at" in truth for truth in TRUTHS)


def test_errors_are_judged_on_the_errors_axis_and_results_on_consistency():
    assert {*MCP.verify("", ERRORS[0])} == {"errors"}
    assert {*MCP.verify("", JSON_TRUTHS[0])} == {"consistency"}
    assert MCP.verify("a", " \n") == {}


REFERENCE = "0f8fad5b-d9cb-469f-a165-70867728950e"
OTHER = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.mark.parametrize(
    ("first", "second", "is_tolerated"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('done\n{"a": 1}', 'done \n{"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 1, "a": 2}', '{"a": 2}', False),
        ("2026-11-26T19:00:00Z", "2025-01-02T03:04:05+00:00", True),
        ("2026-11-26", "2026-11-27", False),
        (f"id {REFERENCE}", f"id {OTHER}", True),
        (f"{REFERENCE} {REFERENCE}", f"{OTHER} {OTHER}", True),
        (f"{REFERENCE} {REFERENCE}", f"{OTHER} {REFERENCE}", False),
        ("commit 3b1f8c2d9e0a4b5c6d7e", "commit 00ff11ee22dd33cc44bb", True),
        ("1234567890123456", "1234567890123457", False),
        ('{"file": "/tmp/a1b2/x.txt"}', '{"file": "/tmp/c3d4/x.txt"}', True),
        ('{"file": "/home/a.txt"}', '{"file": "/home/b.txt"}', False),
        ("kolu", "Kolu", False),
    ],
)
def test_only_volatile_values_and_json_layout_are_ignored(first, second, is_tolerated):
    assert verdict_of(MCP, first, second) is is_tolerated


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(TREES)
def test_json_in_any_layout_is_equal(tree):
    texts = [json.dumps(tree), json.dumps(tree, indent=2), json.dumps(tree, ensure_ascii=False)]
    if isinstance(tree, dict | list):
        assert len(set(map(canonical, texts))) == 1
        assert is_match(MCP, texts[1], texts[0])
    assert canonical(canonical(texts[0])) == canonical(texts[0])


LINES = st.sampled_from(
    ["{", "}", '{"a": 1}', '{ "a":1}', '{"b":2}', f"id {REFERENCE}", f"id {OTHER}", "x ", "x", ""]
)
TEXTS = st.lists(LINES, max_size=4).map("\n".join)


@given(TEXTS, TEXTS)
def test_the_fast_comparison_agrees_with_the_canonical_forms(one, other):
    is_equal = mask_volatile(canonical(one)) == mask_volatile(canonical(other))
    assert is_same(one, other) is is_equal
