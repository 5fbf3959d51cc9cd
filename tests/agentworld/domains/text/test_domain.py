import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.base import (
    OUTPUT,
    Action,
    ActionError,
    Call,
    Start,
    domain_of,
    is_match,
    verdict_of,
)
from agentworld.errors import InputError
from agentworld.records.tool import Tool
from agentworld.records.trajectory import Turn
from agentworld.rendering.messages import system_text
from make import records

PLAIN = domain_of("text")
READ = Tool(name="read", description="Reads a file.", input_schema={"type": "object"})
LINES = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(" ".join), max_size=4)
SCREENS = LINES.map("\n".join)


def scores(predicted, truth):
    return tuple(PLAIN.rubric.score_by_rules(predicted, truth))


def test_the_prompt_contains_the_tools_and_the_start():
    prompt = PLAIN.prompt(Start(domain="text", text="a shop with 3 apples", tools=(READ,)))
    first_line, tools, start = system_text(prompt).split("\n")
    assert first_line == "Predict what the environment shows for each action."
    assert tools.startswith('{"name":"read","description":"Reads a file."')
    assert start == "a shop with 3 apples"


def test_an_empty_start_has_a_prompt_of_one_line():
    assert "\n" not in system_text(PLAIN.prompt(Start(domain="text")))


def test_each_stage_has_its_prompt_variants_and_the_default_is_that_of_rl():
    pools = {pool: {*PLAIN.variants(pool)} for pool in ("cpt", "sft", "rl", "held_out")}
    assert pools == {"cpt": {1}, "sft": {*range(2, 12)}, "rl": {0}, "held_out": {0}}
    prompts = [PLAIN.prompt(Start(domain="text"), variant) for variant in range(12)]
    assert len({system_text(prompt) for prompt in prompts}) == 12
    assert PLAIN.prompt(Start(domain="text")) == prompts[0]


@pytest.mark.parametrize(
    "observation",
    [
        "Error: no such user",
        "Traceback (most recent call last):\n  ...\nKeyError: 'a'",
        "bash: kolu: command not found",
        "cat: a.txt: No such file or directory\n$",
        '{"error": {"code": 404}}',
        '{"id": 7, "success": false}',
        "make: stopped (exit code 2)",
    ],
)
def test_a_failure_is_detected_by_common_error_words(observation):
    assert PLAIN.is_failure(observation)


@pytest.mark.parametrize(
    "observation",
    ["", "ok", '{"error": null, "is_error": false}', "3 errors were corrected", "exit code: 0"],
)
def test_an_observation_that_only_mentions_errors_is_no_failure(observation):
    assert not PLAIN.is_failure(observation)


@pytest.mark.parametrize("text", ["ls -l", "click #3\nthen wait", ' {"name": "read"} \n'])
def test_an_action_is_the_whole_stripped_policy_output(text):
    assert PLAIN.parse_action(text) == text.strip()


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_policy_output_is_no_action(text):
    with pytest.raises(ActionError):
        PLAIN.parse_action(text)


def test_a_call_is_rendered_as_a_json_line_and_a_text_unchanged():
    assert PLAIN.render_action(Action("look around")) == "look around"
    calls = (Call("read", {"path": "é"}), Call("read", {"b": 1, "a": None}))
    assert PLAIN.render_action(Action("", calls)) == (
        '{"name":"read","arguments":{"path":"é"}}\n{"name":"read","arguments":{"a":null,"b":1}}'
    )


def test_arguments_that_json_cannot_represent_are_refused():
    with pytest.raises(ActionError, match="the arguments of read are no JSON"):
        PLAIN.render_action(Action("", (Call("read", {"x": float("nan")}),)))


@pytest.mark.parametrize("blank_text", ["", " \n"])
def test_output_is_the_only_tag_and_every_turn_is_kept(blank_text):
    turns = [Turn(action="a", observation=observation) for observation in ("3 apples", blank_text)]
    assert PLAIN.tags(Start(domain="text"), turns) == [{OUTPUT}, set()]
    assert PLAIN.keep([*turns, *turns]) == [True] * 4
    assert not PLAIN.has_unseen("anything")
    assert not PLAIN.minimum_shares


@pytest.mark.parametrize(
    ("predicted", "truth", "expected"),
    [
        ("a b\nc", "a b\nc", (0, 5, 0, 5, 5)),
        ("", "", (0, 5, 0, 5, 5)),
        ("", "a", (0, 1, 0, 1, 1)),
        ("a", "", (0, 1, 0, 1, 1)),
        ("c\na b", "a b\nc", (0, 5, 0, 5, 5)),
        # F1 2*1/(1+2), precision 2/2, coverage 2/3
        ("a b", "a b\nc", (0, 4, 0, 5, 4)),
        ("x y\nz", "a b\nc", (0, 1, 0, 1, 1)),
    ],
)
def test_each_dimension_is_scored_by_its_rule(predicted, truth, expected):
    assert scores(predicted, truth) == expected


@pytest.mark.compute
@given(SCREENS, SCREENS)
def test_scores_are_from_one_to_five_and_never_above_that_of_the_truth(predicted, truth):
    score = PLAIN.rubric.score_by_rules(predicted, truth)
    assert (score.format, score.consistency) == (0, 0)
    assert all(1 <= value <= 5 for value in (score.factuality, score.realism, score.quality))
    assert score.reward <= PLAIN.rubric.score_by_rules(truth, truth).reward == 25


@pytest.mark.compute
@given(
    SCREENS,
    SCREENS,
    st.sampled_from(["x", "x\ny z", "this is perfect", "Score: 5/5", '{"format": 5}']),
    st.booleans(),
)
def test_praise_in_an_observation_raises_no_score(predicted, truth, praise, is_first):
    lines = [praise, predicted] if is_first else [predicted, praise]
    praised_text = "\n".join(line for line in lines if line)
    before_and_after = zip(scores(predicted, truth), scores(praised_text, truth), strict=True)
    assert all(after <= before for before, after in before_and_after)


@pytest.mark.parametrize(
    ("action", "observation", "verdict"),
    [
        ("look", "besa", None),
        ("echo besa", "besa", True),
        ("echo besa", "besa\n[0] ~", False),
        ("echo besa", "", False),
    ],
)
def test_the_closing_action_succeeds_only_with_the_exact_output(action, observation, verdict):
    assert PLAIN.outcome(records.task(domain="text"), action, observation) is verdict


@pytest.mark.compute
def test_a_closing_pattern_that_backtracks_is_stopped():
    closing = r"(x|x)*(x|x)*(x|x)*(.)\4y|(a?){40}a{40}"
    task = records.task(domain="text", success={"closing": closing, "output": ""})
    with pytest.raises(InputError, match="takes more than"):
        PLAIN.outcome(task, "x" * 400, "")


def test_no_rule_has_a_verdict():
    assert PLAIN.verify("a", "a") == {}
    assert verdict_of(PLAIN, "a", "b") is None


@given(st.text())
def test_an_observation_matches_itself(text):
    assert is_match(PLAIN, text, text)


def test_questions_are_deterministic_and_repeat():
    questions = [PLAIN.question(number) for number in range(8)]
    assert questions == [PLAIN.question(number) for number in range(8)]
    assert len({question.action for question in questions}) == 4
    assert {question.start for question in questions} == {Start(domain="text")}


def test_a_thought_is_the_recorded_state():
    assert PLAIN.thought("3 apples", "buy") == "3 apples"
    assert PLAIN.thought("", "buy") == "none"


@given(st.text())
def test_the_pieces_of_a_text_join_to_the_whole_text(text):
    assert "".join(regex.findall(PLAIN.tiny.pattern, text)) == text
    assert list(PLAIN.tiny.warm_up(9, 0)) == []
