import json
from itertools import takewhile

import pytest
import regex

from agentworld.domains.base import Action, ActionError, Call, Start, domain_of
from agentworld.domains.mcp.shop.server import Shop
from agentworld.domains.mcp.shop.tasks import answer, solved_task
from agentworld.domains.words import held_out_words
from agentworld.records.tool import Tool
from agentworld.records.trajectory import Turn
from agentworld.rendering.messages import system_text
from make import records

MCP = domain_of("mcp")
GET = '{"name":"get_item","arguments":{"item":"kolu"}}'
KOLU = '{"name":"kolu","price":7,"stock":3}'
ORDER = '{"order":1,"item":"kolu","quantity":2,"status":"open"}'


@pytest.mark.parametrize(
    "text",
    [
        GET,
        f" {GET}\n",
        '{"arguments": {"item": "kolu"}, "name": "get_item"}',
        '{\n  "name": "get_item",\n  "arguments": {\n    "item": "kolu"\n  }\n}',
    ],
)
def test_a_call_is_parsed_to_one_form_from_any_json_layout(text):
    assert (
        MCP.parse_action(text)
        == GET
        == MCP.render_action(Action("", (Call("get_item", {"item": "kolu"}),)))
    )


def test_several_calls_are_one_line_each():
    assert MCP.parse_action(f"{GET}\n{GET}") == f"{GET}\n{GET}"


@pytest.mark.parametrize(
    "text", ["get_item kolu", '{"name": "get_item"', '{"name": "a", "arguments": {"n": NaN}}']
)
def test_a_text_that_is_no_call_is_kept_as_the_action(text):
    assert MCP.parse_action(f" {text}\n") == text


def test_an_empty_policy_output_is_no_action():
    with pytest.raises(ActionError, match="wrote no call"):
        MCP.parse_action(" \n")


def test_the_prompt_contains_the_start_and_its_tools_but_no_shop_tools():
    tool = Tool(
        name="look",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        effect="read",
    )
    start = Start(domain="mcp", text=KOLU, tools=(tool,))
    first_line, tool_line, state = system_text(MCP.prompt(start)).split("\n")
    assert first_line.startswith("Simulate the MCP server")
    assert json.loads(tool_line) == {
        "name": "look",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    assert state == start.text
    assert "get_item" not in system_text(MCP.prompt(Start(domain="mcp")))
    assert len({system_text(MCP.prompt(start, variant)) for variant in range(12)}) == 12


@pytest.mark.parametrize(
    ("action", "observation", "outcome"),
    [
        (GET, KOLU, True),
        (GET, '{"price": 7, "stock": 3, "name": "kolu"}', True),
        ('{"arguments": {"item": "kolu"}, "name": "get_item"}', KOLU, True),
        (GET, KOLU.replace("7", "8"), False),
        (GET, "Error: there is no item 'kolu'", False),
        (GET.replace("kolu", "tane"), KOLU, None),
    ],
)
def test_the_result_of_the_closing_call_decides_the_outcome(action, observation, outcome):
    closing = GET.replace("{", r"\{").replace("}", r"\}")
    task = records.task(domain="mcp", success={"closing": closing, "output": KOLU})
    assert MCP.outcome(task, action, observation) is outcome


def test_a_thought_is_the_part_of_the_state_that_the_call_names():
    state = f"{KOLU}\n{KOLU.replace('kolu', 'tane')}\n{ORDER}"
    assert MCP.thought(state, GET) == f"{KOLU}\n{ORDER}"
    assert MCP.thought(state, '{"name":"list_items","arguments":{}}') == state
    assert MCP.thought(state, '{"name":"get_order","arguments":{"order":9}}') == "none"
    assert MCP.thought("", GET) == "none"


def test_a_question_is_the_first_step_of_a_held_out_task():
    questions = [MCP.question(number) for number in range(30)]
    for number, (start, action) in enumerate(questions):
        assert start.text == solved_task(number, held_out=True).task.initial_state
        assert answer(Shop(start.text), action)
    assert any(MCP.has_unseen(f"{start.text} {action}") for start, action in questions)
    assert not MCP.has_unseen(GET)
    assert MCP.has_unseen(f'{{"item":"{held_out_words()[0]}"}}')


def test_a_repeated_failure_is_not_kept():
    failure = Turn(action=GET, observation="Error: there is no item 'kolu'")
    result = Turn(action=GET, observation=KOLU)
    assert MCP.keep([failure, failure, result, result, failure]) == [True, False, True, True, True]


def test_warm_up_texts_are_deterministic_and_contain_json_punctuation():
    texts = list(MCP.tiny.warm_up(5, 1))
    assert texts == list(MCP.tiny.warm_up(5, 1))
    assert any('":"' in text for text in texts)


def test_a_warm_up_text_of_updates_agrees_with_the_shop():
    _, text, *_ = MCP.tiny.warm_up(5, 1)
    lines = text.splitlines()
    start = list(takewhile(lambda line: '"item"' not in line, lines))
    shop = Shop("\n".join(start))
    for action, observation in zip(lines[len(start) :: 2], lines[len(start) + 1 :: 2], strict=True):
        call = {"name": "update_item", "arguments": json.loads(action)}
        is_look = len(call["arguments"]) == 1
        assert (
            answer(shop, json.dumps(call | {"name": "get_item"} if is_look else call))
            == observation
        )


def test_a_word_is_one_piece_in_every_context():
    pieces = regex.compile(MCP.tiny.pattern)
    for text in (KOLU, ORDER, "add kolu at price 3", "there is no item 'kolu'"):
        assert "kolu" in pieces.findall(text)
        assert "".join(pieces.findall(text)) == text


def scores(predicted, truth):
    return MCP.rubric.score_by_rules(predicted, truth)


def test_the_rubric_scores_json_values_and_the_format_of_a_result():
    assert (*scores(KOLU.replace(",", ", "), KOLU),) == (5, 5, 0, 5, 5)
    near_score, far_score = scores(KOLU.replace("7", "8"), KOLU), scores("Error: none", KOLU)
    assert near_score.format == 5
    assert far_score.format == 1
    assert far_score.factuality < near_score.factuality < 5
