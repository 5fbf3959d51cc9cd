import pytest

from agentworld.domains.base import Call, domain_of
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.turn_kinds import kind_of_action, kind_of_name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("get_user_details", "read"),
        ("listAllAirports", "read"),
        ("search_direct_flight", "read"),
        ("book_reservation", "write"),
        ("update_reservation_flights", "write"),
        ("create_search_index", "write"),
        ("mcp__files__HTTPDelete", "write"),
        ("calculate", "computation"),
        ("think", "computation"),
        ("order_history", None),
        ("frobnicate", None),
        ("", None),
    ],
)
def test_the_first_verb_of_a_tool_name_determines_its_kind(name, kind):
    assert kind_of_name(name) == kind


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("ls -l", "read"),
        ("cat a.txt | wc -l", "computation"),
        ("echo kolu > a.txt", "write"),
        ("echo kolu>>a.txt", "write"),
        ("grep a b 2>/dev/null", "read"),
        ("grep a b 2>&1", "read"),
        ("awk '{print $1 > 2}' a", "computation"),
        ("cd lomi", "write"),
        ("cd lomi && ls", "read"),
        ("test -f a && rm a", "write"),
        ("[ -f a ]", "read"),
        ("echo $?", "read"),
        ("echo kolu", "computation"),
        ("cat a && frobnicate", None),
        ("python -c 'open(1)'", None),
        ("", None),
    ],
)
def test_the_programs_of_a_command_determine_its_kind(action, kind):
    assert domain_of("shell").turn_kind(action) == domain_of("text").turn_kind(action) == kind


def render(*calls):
    return render_calls(Call(name, arguments) for name, arguments in calls)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (render(("get_user", {"id": 1})), "read"),
        (render(("get_user", {}), ("cancel_order", {})), "write"),
        (render(("get_user", {}), ("calculate", {})), "computation"),
        (render(("get_user", {}), ("frobnicate", {})), None),
        (render(("bash", {"command": "ls -l"})), "read"),
        (render(("execute", {"cmd": "rm a"})), "write"),
        (render(("bash", {"command": 3})), None),
        ("search[the moon]", "read"),
    ],
)
def test_the_tools_of_calls_determine_the_kind_and_a_write_prevails(action, kind):
    assert kind_of_action(action) == kind


def test_rendered_calls_are_parsed_to_the_same_calls():
    calls = (Call("get_user", {"id": 1, "name": "é\n\u2028"}), Call("think", {}))
    assert parse_calls(render_calls(calls)) == calls


@pytest.mark.parametrize(
    "action",
    ["", "ls", "{", "[1]", '{"name": 1, "arguments": {}}', '{"name": "a", "arguments": {}}\nls'],
)
def test_a_text_that_is_no_call_is_parsed_to_no_calls(action):
    assert parse_calls(action) == ()
