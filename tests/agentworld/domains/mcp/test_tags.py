import json

import pytest

from agentworld.domains.base import HISTORY, OUTPUT, UNSEEN, Start, domain_of
from agentworld.domains.mcp.tags import FAILURE, MALFORMED
from agentworld.domains.turn_kinds import KIND_TAGS
from agentworld.domains.words import held_out_words
from agentworld.records.tool import Tool
from agentworld.records.trajectory import Turn

MCP = domain_of("mcp")
SHOP = Start(domain="mcp")
KOLU = '{"name":"kolu","price":7,"stock":3}'


def turn(name, observation="{}", **arguments):
    return Turn(action=json.dumps({"name": name, "arguments": arguments}), observation=observation)


def tags(*turns, start=SHOP):
    return MCP.tags(start, turns)


def test_a_turn_is_tagged_by_tool_output_and_kind():
    (read_tags, blank_tags) = tags(turn("get_item", KOLU, item="kolu"), turn("list_items", " "))
    assert read_tags == {"get_item", OUTPUT, KIND_TAGS["read"]}
    assert blank_tags == {"list_items", KIND_TAGS["read"]}


def test_failed_and_malformed_calls_are_tagged():
    malformed_turn = Turn(action="ls", observation="MCP error -32700: Parse error")
    failed_turn = turn("get_item", "Error: there is no item 'a'", item="a")
    first, second = tags(malformed_turn, failed_turn)
    assert first == {MALFORMED, FAILURE, OUTPUT}
    assert FAILURE in second


@pytest.mark.parametrize(
    ("write_turn", "read_turn", "is_history"),
    [
        (
            turn("update_item", KOLU, item="kolu", price=7),
            turn("get_item", KOLU, item="kolu"),
            True,
        ),
        (turn("update_item", KOLU, item="kolu"), turn("list_items", f'{{"items":[{KOLU}]}}'), True),
        (
            turn("remove_item", "removed kolu", item="kolu"),
            turn("get_item", "Error: a", item="kolu"),
            True,
        ),
        (
            turn("cancel_order", "cancelled order 1", order=1),
            turn("get_order", "{}", order=1),
            True,
        ),
        (
            turn("cancel_order", "cancelled order 1", order=1),
            turn("get_order", "{}", order=2),
            False,
        ),
        (turn("update_item", "Error: a", item="kolu"), turn("get_item", KOLU, item="kolu"), False),
        (turn("get_item", KOLU, item="kolu"), turn("get_item", KOLU, item="kolu"), False),
        (turn("update_item", KOLU, item="kolu"), turn("get_item", "{}", item="tane"), False),
    ],
)
def test_a_read_of_an_earlier_write_is_tagged_as_history(write_turn, read_turn, is_history):
    assert (HISTORY in tags(write_turn, read_turn)[1]) is is_history


def test_a_held_out_word_in_a_call_or_a_result_is_tagged_as_unseen():
    word = held_out_words()[0]
    first, second, third = tags(
        turn("get_item", item=word), turn("list_items", f'{{"a":"{word}"}}'), turn("list_items")
    )
    assert UNSEEN in first & second
    assert UNSEEN not in third


@pytest.mark.parametrize(
    ("name", "effect", "kind"),
    [
        ("frobnicate", "read", "read"),
        ("frobnicate", "write", "write"),
        ("frobnicate", "", None),
        ("get_item", "write", "write"),
        ("compute_value", "read", "computation"),
        ("get_item", "", "read"),
    ],
)
def test_the_kind_of_a_turn_is_its_tools_annotation_or_the_verb_in_its_name(name, effect, kind):
    tool = Tool(name=name, input_schema={"type": "object"}, effect=effect)
    call = turn(name)
    (turn_tags,) = tags(call, start=Start(domain="mcp", tools=(tool,)))
    assert MCP.turn_kind(call.action, turn_tags) == kind


def test_one_write_among_several_calls_makes_the_turn_a_write():
    calls = [turn("get_item", item="a"), turn("remove_item", item="a")]
    joint_turn = Turn(action="\n".join(call.action for call in calls), observation="a\nb")
    (turn_tags,) = tags(joint_turn)
    assert turn_tags == {"get_item", "remove_item", OUTPUT, KIND_TAGS["write"]}
    assert MCP.turn_kind(joint_turn.action, turn_tags) == "write"
