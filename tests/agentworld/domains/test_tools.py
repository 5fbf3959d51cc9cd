import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.base import ActionError, domain_of
from agentworld.domains.tools import Toolbox, check_tools
from agentworld.errors import InputError
from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

SHELL, PLAIN = domain_of("shell"), domain_of("text")
(BASH,) = SHELL.tools
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
domains = pytest.mark.parametrize("domain", [SHELL, PLAIN], ids=lambda domain: domain.name)


def action_of(tools, name, arguments, domain=SHELL):
    return Toolbox(domain, tuple(tools)).action_of(name, arguments)


def tool(**properties):
    return Tool(name="t", input_schema={"type": "object", "properties": properties})


@pytest.mark.compute
@domains
@given(arguments=ARGUMENTS)
def test_a_call_is_rendered_as_canonical_json_of_its_name_and_arguments(domain, arguments):
    action = action_of([BASH, ANY], "any", arguments, domain)
    assert action.startswith('{"name":"any","arguments":{')
    assert json.loads(action) == {"name": "any", "arguments": arguments}
    reversed_arguments = dict(reversed(arguments.items()))
    assert action_of([BASH, ANY], "any", reversed_arguments, domain) == action


@pytest.mark.compute
@given(TEXT)
def test_a_bash_command_is_the_action_unchanged(command):
    assert action_of([ANY, BASH], "bash", {"command": command}) == command


def test_bash_is_an_ordinary_tool_outside_the_shell_domain():
    action = action_of([BASH], "bash", {"command": "ls"}, PLAIN)
    assert action == '{"name":"bash","arguments":{"command":"ls"}}'


@pytest.mark.compute
@given(ARGUMENTS)
def test_bash_accepts_only_a_single_command_argument(arguments):
    try:
        action = action_of([BASH], "bash", arguments)
    except ActionError:
        assert arguments.keys() != {"command"} or not isinstance(arguments["command"], str)
    else:
        assert arguments == {"command": action}


def test_an_episode_tool_named_bash_is_an_ordinary_tool():
    own_tool = BASH.model_copy(update={"description": "another"})
    assert action_of([own_tool], "bash", {"command": "ls"}).startswith('{"name":"bash"')


@domains
@pytest.mark.parametrize(
    ("tools", "names"), [([], "none"), ([ANY, BASH], "any, bash")], ids=["none", "some"]
)
def test_an_unknown_tool_is_refused_and_the_known_tools_are_listed(domain, tools, names):
    with pytest.raises(ActionError, match=f"no tool 'ls' in this episode; there is {names}"):
        action_of(tools, "ls", {}, domain)


@domains
def test_arguments_that_do_not_fit_the_schema_are_refused(domain):
    with pytest.raises(ActionError, match="arguments of t do not fit its schema.*otherwise"):
        action_of([tool(path={"type": "string"})], "t", {"path": 1}, domain)


@domains
@pytest.mark.parametrize("number", [float("nan"), float("inf")], ids=str)
def test_a_number_that_json_does_not_have_is_refused(domain, number):
    with pytest.raises(ActionError, match="the arguments of any are no JSON"):
        action_of([ANY], "any", {"x": number}, domain)


@domains
def test_arguments_that_are_nested_too_deeply_are_refused(domain):
    value: list = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(ActionError, match="the arguments of any are no JSON"):
        action_of([ANY], "any", {"x": value}, domain)


@pytest.mark.parametrize(
    ("domain", "own_tools", "tools"),
    [
        (SHELL, (), (BASH,)),
        (SHELL, (ANY,), (ANY,)),
        (PLAIN, (), ()),
        (PLAIN, (ANY,), (ANY,)),
    ],
    ids=["shell", "own in a shell", "text", "own in text"],
)
def test_an_episode_has_its_own_tools_or_those_of_its_domain(domain, own_tools, tools):
    assert Toolbox.of(domain, EpisodeOpening(run="r", tools=own_tools)) == (domain, tools)


def test_the_error_for_an_unusable_schema_names_the_tool():
    with pytest.raises(InputError, match="the input schema of tool t cannot be used: missing"):
        check_tools([ANY, tool(path={"pattern": "("})])


def test_all_tools_together_have_a_byte_limit():
    large_tools = [tool(path={"description": "x" * 2**16})] * 4
    check_tools(large_tools[:3])
    with pytest.raises(InputError, match="have more than 262144 bytes"):
        check_tools(large_tools)
