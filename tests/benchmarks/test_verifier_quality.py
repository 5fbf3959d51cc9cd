"""The quality measure finds verifiers that are too lenient and verifiers that are too strict."""

import re
from random import Random

import pytest

from agentworld.domains.base import domain_of
from make import shop_episodes
from make.changed_observations import (
    FORMS,
    meaning,
    missing_line,
    other_key,
    other_order,
    other_value,
    tolerated_change,
)
from make.recorded_twice import DoubleTurn
from make.verifier_quality import measure_quality

MCP = domain_of("mcp")
ALL = tuple(FORMS.values())


def recorded_episode(seed):
    """An episode in a shop in this process, twice; for `stale`, without earlier writes."""
    episode = shop_episodes.episode(seed)
    rows = zip(episode.turns, shop_episodes.replay(episode), strict=True)
    return [
        DoubleTurn(
            turn.action,
            turn.observation,
            replay,
            shop_episodes.answer(shop_episodes.Shop(episode.turns[0].before), turn.action),
        )
        for turn, replay in rows
    ]


EPISODES = [recorded_episode(seed) for seed in range(15)]


def is_error(text):
    return text.startswith("Error: ")


def verdicts_by(form):
    """The domain with a verifier that compares a form of two observations."""

    class FormVerifier(type(MCP)):
        def verify(self, predicted, truth):
            return {"consistency": form(predicted) == form(truth)}

    return measure_quality(FormVerifier(), EPISODES)


@pytest.mark.compute
def test_the_domains_verifier_judges_every_change_correctly():
    quality = measure_quality(MCP, EPISODES)
    assert quality.mistakes == []
    assert quality.second_truth_pass.value == quality.tolerated_pass.value == 1
    assert {kind for kind, share in quality.killed.items() if share.total < 5} == set()


@pytest.mark.compute
@pytest.mark.parametrize(
    ("form", "kinds"),
    [
        (len, {"value"}),
        (sorted, {"order"}),
        (is_error, {"value", "key", "missing_line", "stale_state", "copied_state"}),
        (lambda _: "", {"success_for_error", "error_for_success"}),
    ],
)
def test_a_too_lenient_verifier_misses_its_figure(form, kinds):
    killed = verdicts_by(form).killed
    assert {kind for kind in kinds if killed[kind].value >= 0.95} == set()


@pytest.mark.compute
def test_a_verifier_that_compares_bytes_is_too_strict():
    assert verdicts_by(lambda text: text).tolerated_pass.value < 0.995


@pytest.mark.parametrize(
    ("change", "text", "results"),
    [
        (other_value, '{"a":[true]}', {'{"a":[false]}'}),
        (other_value, '{"at":"2026-11-27T03:41:22Z"}', {None}),
        (other_value, "[1] 17", {None}),
        (other_key, "kolu tane", {None}),
        (other_order, '{"a": [1, 2]}', {'{"a":[2,1]}'}),
        (other_order, "kolu\nkolu\n\ntane", {None}),
        (other_order, "kolu\ntane", {"tane\nkolu"}),
        (missing_line, '[{"a": 1}]', {"[]", "[{}]"}),
        (missing_line, "kolu\n\ntane", {"\ntane", "kolu\n"}),
        (missing_line, "kolu", {None}),
    ],
)
def test_a_change_is_the_smallest_of_its_kind_or_none(change, text, results):
    assert {change(Random(seed), text, ALL) for seed in range(20)} == results


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ('{"kolu":1}', r'\{"(\w+)":1\}'),
        ('done\n[{"kolu":1}]', r'done\n\[\{"(\w+)":1\}\]'),
        ("cat: kolu.txt: Is a directory", r"cat: ([\w.]+): Is a directory"),
        ("PATH=kolu", "(.+)=kolu"),
    ],
)
def test_a_key_change_replaces_a_name_and_keeps_its_value(text, pattern):
    name, new_name = (
        re.fullmatch(pattern, item)[1] for item in (text, other_key(Random(1), text, ALL))
    )
    assert name != new_name
    assert len(name) == len(new_name)


def test_a_tolerated_change_replaces_times_ids_and_paths_and_keeps_the_meaning():
    line = "2026-11-27T03:41:22.5+02:00 Nov 27 03:41 /tmp/a1/b.txt tmp.0123456789"
    rows = "[1] 17\n 17 pts/6  07:08:09 ps\nFri Nov 27 03:41:22 UTC 2026"
    text = f"{line}\n{rows}\n{'0123abcd' * 2} {'0123abcd' * 2}"
    changed_text = tolerated_change(Random(1), text, ALL)
    assert "/b.txt" in changed_text
    assert "+02:00" in changed_text
    assert changed_text.rpartition("\n")[2][:16] == changed_text[-16:]
    assert not {*text.split()} & {*changed_text.split()} - {"[1]", "ps", "UTC", "2026"}
    assert meaning(changed_text, ALL) == meaning(text, ALL)
    assert tolerated_change(Random(1), "kolu 17\n[0] ~", ALL) is None
