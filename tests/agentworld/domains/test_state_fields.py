"""The number of fields of a live state that an action changed."""

import asyncio
import json

import pytest

from agentworld.domains.live import live_domain, open_environment
from agentworld.domains.state_fields import change_tag, count_changes, fields_of_objects
from make import mcp_servers, records


@pytest.mark.parametrize(
    ("before", "after", "num"),
    [
        ({}, {}, 0),
        ({"a": "1"}, {"a": "1"}, 0),
        ({"a": "1", "b": "2"}, {"a": "2", "b": "2"}, 1),
        ({"a": "1"}, {"b": "1"}, 2),
        ({"a": "1"}, {}, 1),
        ({"a": ""}, {}, 1),
        (None, {}, None),
        ({}, None, None),
    ],
)
def test_added_removed_and_changed_fields_are_counted(before, after, num):
    assert count_changes(before, after) == num


def test_fields_are_named_by_the_first_field_of_their_object():
    lines = '{"name":"kolu","price":3,"sold":false}\n{"order":1,"item":"kolu"}'
    assert fields_of_objects(lines) == {
        "name kolu price": "3",
        "name kolu sold": "false",
        "order 1 item": '"kolu"',
    }
    assert fields_of_objects("") == {}


def test_several_changes_have_one_tag():
    assert [change_tag(num) for num in (0, 1, 2, 9)] == [
        "no field changed",
        "1 field changed",
        "2 or more fields changed",
        "2 or more fields changed",
    ]


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def keys(text):
    return json.dumps([{"keystrokes": f"{text}\n", "duration": 5}])


SCRIPTS = {
    "mcp": [
        (call("add_item", item="kolu", price=3, stock=9), 2),
        (call("update_item", item="kolu", price=4), 1),
        (call("update_item", item="kolu", price=4), 0),
        (call("create_order", item="kolu", quantity=2), 4),  # A stock, and all fields of an order.
        (call("get_item", item="kolu"), 0),
    ],
    "shell": [
        ("echo kolu > a.txt", 1),
        ("cat a.txt", 0),
        ("mkdir b c", 2),
        ("cd b", 1),
        ("echo tane >> ../a.txt", 1),
        ("rm ../nosuch", 0),
    ],
    "terminal": [(keys("echo kolu > a.txt"), 1), (keys("cd; ls"), 0), (keys("mv a.txt b.txt"), 2)],
}


@pytest.mark.waits
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_live_environment_reports_the_fields_that_each_action_changed(name):
    async def play():
        async with open_environment(name) as environment:
            await environment.reset(live_domain(name).task(1, held_out=False, has_goal=False))
            fields, counts = await environment.fields(), []
            for action, _ in SCRIPTS[name]:
                await environment.step(action)
                before, fields = fields, await environment.fields()
                counts.append(count_changes(before, fields))
            return counts, environment.num_steps

    expected = [num for _, num in SCRIPTS[name]]
    assert asyncio.run(play()) == (expected, len(expected))


@pytest.mark.waits
def test_servers_without_a_state_to_read_have_unknown_fields():
    async def play():
        environment = mcp_servers.environment(
            {"test": mcp_servers.command()}, mcp_servers.Started()
        )
        try:
            await environment.reset(records.task(domain="mcp"))
            return await environment.fields()
        finally:
            await environment.aclose()

    assert asyncio.run(play()) is None


@pytest.mark.parametrize("state", ["no JSON", '{"name":"kolu"}\n3', "[1]", "{}", "[" * 100_000])
def test_a_state_of_another_form_has_unknown_fields(state):
    assert fields_of_objects(state) is None
