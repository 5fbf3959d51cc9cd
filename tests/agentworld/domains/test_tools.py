import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.tools import BASH, action_of, check_tools, tools_of
from agentworld.errors import InputError
from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

ANY = Tool(name="any", input_schema={"type": "object"})
TEXT = st.text(st.characters(), max_size=5)  # lone surrogates too
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXT, JSON, max_size=4)


def tool(**properties):
    return Tool(name="t", input_schema={"type": "object", "properties": properties})


@pytest.mark.compute
@given(ARGUMENTS)
def test_a_call_is_json_of_its_name_and_its_arguments_in_one_form(arguments):
    action = action_of([BASH, ANY], "any", arguments)
    assert action.startswith('{"name":"any","arguments":{')
    assert json.loads(action) == {"name": "any", "arguments": arguments}
    turned = dict(reversed(arguments.items()))
    assert action_of([BASH, ANY], "any", turned) == action


@pytest.mark.compute
@given(TEXT)
def test_a_command_is_an_action_as_it_is(command):
    assert action_of([ANY, BASH], "bash", {"command": command}) == command


@pytest.mark.compute
@given(ARGUMENTS)
def test_bash_takes_one_command_and_nothing_else(arguments):
    try:
        action = action_of([BASH], "bash", arguments)
    except InputError:
        assert arguments.keys() != {"command"} or not isinstance(arguments["command"], str)
    else:
        assert arguments == {"command": action}


def test_an_episodes_own_bash_is_called_like_any_other_tool():
    own = BASH.model_copy(update={"description": "another"})
    assert action_of([own], "bash", {"command": "ls"}).startswith('{"name":"bash"')


@pytest.mark.parametrize(
    ("tools", "known"), [([], "none"), ([ANY, BASH], "any, bash")], ids=["none", "some"]
)
def test_an_unknown_tool_is_told_with_those_that_there_are(tools, known):
    with pytest.raises(InputError, match=f"no tool 'ls' in this episode; there is {known}"):
        action_of(tools, "ls", {})


@pytest.mark.parametrize("number", [float("nan"), float("inf")], ids=str)
def test_a_number_that_json_does_not_have_is_refused(number):
    with pytest.raises(InputError, match="the arguments of any are no JSON"):
        action_of([ANY], "any", {"x": number})


def test_arguments_that_are_nested_too_deeply_are_refused():
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InputError, match="the arguments of any are no JSON"):
        action_of([ANY], "any", {"x": deep})


@pytest.mark.parametrize(
    ("domains", "own", "tools"),
    [
        (("terminal",), (), (BASH,)),
        (("terminal",), (ANY,), (ANY,)),
        (("terminal", "mcp"), (), ()),
        ((), (), ()),
        (("mcp",), (ANY,), (ANY,)),
    ],
    ids=["terminal", "own", "two", "unknown", "mcp"],
)
def test_an_episode_has_its_own_tools_and_else_those_of_a_terminal(domains, own, tools):
    assert tools_of(domains, EpisodeOpening(run="r", tools=own)) == tools


def test_a_schema_that_cannot_be_used_is_told_with_its_tool():
    with pytest.raises(InputError, match="the input schema of tool t cannot be used: missing"):
        check_tools([ANY, tool(path={"pattern": "("})])


def test_tools_of_any_number_have_so_many_bytes():
    large = [tool(path={"description": "x" * 2**16})] * 4
    check_tools(large[:3])
    with pytest.raises(InputError, match="have more than 262144 bytes"):
        check_tools(large)
