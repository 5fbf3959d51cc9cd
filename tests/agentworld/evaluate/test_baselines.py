import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.base import Call
from agentworld.domains.calls import render_calls
from agentworld.domains.words import training_words
from agentworld.engine.base import CompletionRequest
from agentworld.evaluate.baselines import CopyPrevious, MostFrequent, RepeatEarlier
from agentworld.evaluate.nearest import NearestTransition
from agentworld.records.sample import Sample
from agentworld.records.simulator import Sampling
from agentworld.records.trajectory import Turn
from agentworld.rendering.messages import world_messages
from make import records


def episode(*turns, start="", number=0):
    """A sample of these actions and observations."""
    sample = records.sample(number, num_turns=len(turns))
    changed_turns = [
        turn.model_copy(update={"action": action, "observation": observation})
        for turn, (action, observation) in zip(sample.turns, turns, strict=True)
    ]
    prompt = sample.prompt.model_copy(update={"initial_state": start})
    return sample.model_copy(update={"turns": tuple(changed_turns), "prompt": prompt})


def answer(engine, action, *history, start=""):
    prompt = records.sample().prompt.model_copy(update={"initial_state": start})
    turns = [Turn(action=a, observation=o) for a, o in history]
    messages = world_messages(prompt, turns, action)
    return asyncio.run(engine.complete(CompletionRequest(messages, Sampling()))).text


def test_copy_previous_predicts_an_empty_first_observation():
    assert answer(CopyPrevious(), "ls") == ""


def test_copy_previous_predicts_the_last_observation():
    assert answer(CopyPrevious(), "ls", ("a", "kolu\n[0] ~"), ("b", "tane\n[1] ~")) == "tane\n[1] ~"


def test_repeat_earlier_predicts_the_same_actions_last_observation_or_nothing():
    history = [("ls", "a"), ("ls", "b"), ("cat b", "c")]
    assert answer(RepeatEarlier(), "ls", *history) == "b"
    assert answer(RepeatEarlier(), "pwd", *history) == answer(RepeatEarlier(), "ls") == ""


def call(name, **arguments):
    return render_calls([Call(name, arguments)])


def test_most_frequent_predicts_the_tools_most_frequent_observation():
    turns = [(call("get", id=n), observation) for n, observation in enumerate("abbc")]
    turns += [("search[moon]", "d"), ("ls -l", "e"), ("ls", "e"), ("ls", "f")]
    engine = MostFrequent([episode(*turns)])
    actions = [call("get", id=9), call("put", id=9), "search[sun]", "ls -a", ""]
    assert [answer(engine, action) for action in actions] == ["b", "", "d", "e", ""]


@given(st.lists(st.sampled_from("aab"), min_size=1, max_size=30))
def test_most_frequent_drops_rare_observations_first_when_full(shown):
    rare = [("ls", f"rare {number}") for number in range(100)]
    frequent = [("ls", text) for text in ["often"] * 50 + shown]
    for turns in ([*frequent, *rare], [*frequent[:25], *rare, *frequent[25:]]):
        assert answer(MostFrequent([episode(*turns)], most_characters=2_000), "ls") == "often"


def test_the_nearest_call_has_the_same_tool_and_similar_arguments():
    users = [episode((call("get_user", id=name), f"user {name}")) for name in ("ada", "bob")]
    engine = NearestTransition([*users, episode((call("get_order", id="bob"), "order 1"))])
    assert answer(engine, call("get_user", id="bob", page=2)) == "user bob"
    assert answer(engine, call("get_order", id="ada")) == "order 1"
    assert answer(engine, call("put_order", id="ada")) == ""


@pytest.mark.compute
def test_nearest_transition_keeps_the_same_part_of_the_turns_when_full():
    samples = [random_episode(number) for number in range(40)]
    full, *small = (NearestTransition(samples, size) for size in (10**9, 50_000, 50_000))
    actions = [turn.action for sample in samples for turn in sample.turns if "cat" in turn.action]
    answers = [[answer(engine, action) for action in actions] for engine in (full, *small)]
    assert answers[1] == answers[2] != answers[0]
    assert answer(NearestTransition(samples, 0), actions[0]) == ""


RECORDED = [
    episode(("cat rimo.txt", "kolu\n[0] ~"), start="rimo.txt: kolu"),
    episode(("cat rimo.txt", "tane\n[0] ~"), start="rimo.txt: tane"),
    episode(("cat besa.txt", "kolu\n[0] ~"), start="besa.txt: kolu"),
    episode(("cd lomi", "[0] ~/lomi"), ("echo kolu > rimo.txt", "[0] ~/lomi")),
    episode(("echo kolu > rimo.txt", "[0] ~"), ("ls", "rimo.txt\n[0] ~")),
]


@pytest.mark.parametrize(
    ("action", "history", "start", "expected"),
    [
        ("cat rimo.txt", [], "rimo.txt: tane", "tane\n[0] ~"),
        ("cat rimo.txt", [], "rimo.txt: kolu", "kolu\n[0] ~"),
        ("cat rimo.txt", [("echo tane > rimo.txt", "[0] ~")], "", "tane\n[0] ~"),
        ("echo kolu > rimo.txt", [("cd lomi", "[0] ~/lomi")], "", "[0] ~/lomi"),
        ("echo kolu > rimo.txt", [], "", "[0] ~"),
        ("ls", [("echo kolu > rimo.txt", "[0] ~")], "", "rimo.txt\n[0] ~"),
        ("mv a b", [], "", ""),
        ("", [], "", ""),
    ],
    ids=["start", "other start", "written", "place", "other place", "list", "new verb", "empty"],
)
def test_the_nearest_turn_has_the_same_first_word_and_the_most_similar_context(
    action, history, start, expected
):
    assert answer(NearestTransition(RECORDED), action, *history, start=start) == expected


def test_nearest_transition_finds_every_recorded_turn():
    engine = NearestTransition(RECORDED)
    for sample in RECORDED:
        history = [(turn.action, turn.observation) for turn in sample.turns]
        start = sample.prompt.initial_state
        for index, (action, observation) in enumerate(history):
            assert answer(engine, action, *history[:index], start=start) == observation


def random_episode(number) -> Sample:
    words = training_words()[number % 1_500 :]
    turns = []
    for place in range(6):
        turns += [
            (f"echo {words[place]} > {words[place + 1]}.txt", "[0] ~"),
            (f"cat {words[place + 1]}.txt", f"{words[place]}\n[0] ~"),
        ]
    sample = episode(*turns, start=f"{words[9]}.txt: {words[8]}")
    return sample.model_copy(update={"trajectory": f"trajectory {number}"})
