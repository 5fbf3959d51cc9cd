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
def test_the_first_verb_of_a_tools_name_says_what_it_does(name, kind):
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
def test_a_command_is_what_its_programs_do(action, kind):
    assert domain_of("shell").turn_kind(action) == domain_of("text").turn_kind(action) == kind


def called(*calls):
    return render_calls(Call(name, arguments) for name, arguments in calls)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (called(("get_user", {"id": 1})), "read"),
        (called(("get_user", {}), ("cancel_order", {})), "write"),
        (called(("get_user", {}), ("calculate", {})), "computation"),
        (called(("get_user", {}), ("frobnicate", {})), None),
        (called(("bash", {"command": "ls -l"})), "read"),
        (called(("execute", {"cmd": "rm a"})), "write"),
        (called(("bash", {"command": 3})), None),
        ("search[the moon]", "read"),
    ],
)
def test_calls_are_what_their_tools_do_and_a_write_decides(action, kind):
    assert kind_of_action(action) == kind


def test_calls_are_read_as_they_are_written():
    calls = (Call("get_user", {"id": 1, "name": "é\n\u2028"}), Call("think", {}))
    assert parse_calls(render_calls(calls)) == calls


@pytest.mark.parametrize(
    "action",
    ["", "ls", "{", "[1]", '{"name": 1, "arguments": {}}', '{"name": "a", "arguments": {}}\nls'],
)
def test_what_is_no_call_has_none(action):
    assert parse_calls(action) == ()
