import json
from datetime import datetime

import jsonschema
import pytest

from agentworld.domains.mcp.shop.server import RequestError, Shop, call
from agentworld.domains.mcp.shop.tools import listed_tools, shop_tools
from agentworld.domains.tools import check_tools
from make import shop_episodes

STATE = """\
{"name":"kolu","price":7,"stock":3}
{"name":"tane","price":1,"stock":0}
{"order":1,"item":"kolu","quantity":2,"status":"open"}"""


def answer(shop, name, **arguments):
    result = call(shop, listed_tools(), name, arguments)
    (content,) = result["content"]
    return content["text"]


def test_a_shop_returns_its_initial_state():
    assert Shop(STATE).state() == STATE
    assert Shop().state() == ""


@pytest.mark.parametrize(
    "line",
    [
        "kolu",
        '{"name":"Kolu","price":1,"stock":1}',
        '{"order":1,"item":"kolu","quantity":2,"status":"lost"}',
        "",
    ],
)
def test_a_state_line_that_is_no_item_or_order_is_refused(line):
    with pytest.raises(ValueError, match="neither an item nor an order"):
        Shop(f"{STATE}\n{line}\n")


def test_write_calls_change_the_results_of_read_calls():
    shop = Shop(STATE)
    assert json.loads(answer(shop, "add_item", item="besa", price=2, stock=5))["stock"] == 5
    assert json.loads(answer(shop, "update_item", item="tane", stock=4))["price"] == 1
    order = json.loads(answer(shop, "create_order", item="besa", quantity=3))
    assert (order["order"], order["item"], order["status"]) == (2, "besa", "open")
    placed_order = json.loads(answer(shop, "get_order", order=2))
    assert datetime.fromisoformat(placed_order.pop("placed_at"))
    assert placed_order == order
    assert answer(shop, "cancel_order", order=1) == "cancelled order 1"
    assert answer(shop, "remove_item", item="kolu") == "removed kolu"
    assert json.loads(answer(shop, "compute_value")) == {"value": 2 * 2 + 4}
    assert len(json.loads(answer(shop, "list_orders"))["orders"]) == 2
    assert len(json.loads(answer(shop, "list_items", max_stock=2))["items"]) == 1
    assert shop.state().split("\n") == [
        '{"name":"besa","price":2,"stock":2}',
        '{"name":"tane","price":1,"stock":4}',
        '{"order":1,"item":"kolu","quantity":2,"status":"cancelled"}',
        '{"order":2,"item":"besa","quantity":3,"status":"open"}',
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("get_item", {"item": "besa"}, "there is no item 'besa'"),
        ("get_order", {"order": 9}, "there is no order 9"),
        ("add_item", {"item": "kolu", "price": 1, "stock": 1}, "there is an item 'kolu' already"),
        ("add_item", {"item": "A b", "price": 1, "stock": 1}, "'A b' is no name"),
        ("update_item", {"item": "kolu"}, "give a price or a stock"),
        ("remove_item", {"item": "kolu"}, "order 1 of 'kolu' is open"),
        ("create_order", {"item": "kolu", "quantity": 4}, "there are 3 of 'kolu' and not 4"),
        ("create_order", {"item": "kolu", "quantity": 0}, "there are 3 of 'kolu' and not 0"),
        ("get_item", {}, "item is required"),
        ("get_item", {"item": 7}, "item is not a text"),
        ("get_item", {"item": "kolu", "colour": "red"}, "colour is not an argument"),
        ("get_order", {"order": True}, "order is not a whole number"),
        ("get_order", {"order": -1}, "order is not a whole number"),
    ],
)
def test_a_refused_call_changes_nothing_and_returns_the_reason(name, arguments, problem):
    shop = Shop(STATE)
    result = call(shop, listed_tools(), name, arguments)
    assert result["isError"]
    assert result["content"][0]["text"].startswith(f"Error: {problem}")
    assert shop.state() == STATE


def test_a_second_cancellation_of_an_order_is_an_error():
    shop = Shop(STATE)
    answer(shop, "cancel_order", order=1)
    assert answer(shop, "cancel_order", order=1) == "Error: order 1 is cancelled"
    assert '{"name":"kolu","price":7,"stock":5}' in shop.state()


def test_an_unknown_tool_is_a_protocol_error():
    with pytest.raises(RequestError):
        call(Shop(), listed_tools(), "state", {})


@pytest.mark.compute
def test_structured_content_fits_its_output_schema_and_equals_the_text():
    schemas = {tool["name"]: tool.get("outputSchema") for tool in listed_tools()}
    names = set()
    for seed in range(30):
        episode = shop_episodes.episode(seed)
        shop = Shop(episode.solved.task.initial_state)
        for turn in episode.turns:
            request = json.loads(turn.action)
            result = call(shop, listed_tools(), request["name"], request["arguments"])
            if not result["isError"] and schemas[request["name"]]:
                jsonschema.validate(result["structuredContent"], schemas[request["name"]])
                assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
                names.add(request["name"])
    assert names == {name for name, schema in schemas.items() if schema}


def test_the_shop_tools_have_valid_schemas_and_known_effects():
    check_tools(shop_tools())
    assert len(shop_tools()) == 10
    assert {tool.effect for tool in shop_tools()} == {"read", "write"}
