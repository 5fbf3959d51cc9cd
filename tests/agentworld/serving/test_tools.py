"""An agent's tools are a part of the world's prompt, in every protocol."""

import pytest

from make import records

SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "maxLength": 9.0}}}
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}
LINE = (
    '{"name":"read","description":"Reads a file.","inputSchema":'
    '{"properties":{"path":{"maxLength":9,"type":"string"}},"type":"object"}}'
)


@pytest.fixture
def service(serve):
    return serve()


def prompts(service):
    """The system messages that the engine read."""
    return [request.messages[0]["content"] for request in service.engine.requests]


def test_tools_are_rendered_between_the_system_prompt_and_the_initial_state(service):
    service.step(service.reset(tools=[TOOL], initial_state="rimo.txt"), "ls", 1)
    prompt = records.manifest().domains["shell"].system_prompt
    assert prompts(service) == [f"{prompt}\n{LINE}\nrimo.txt"]


def test_replicas_render_the_same_prompt_with_tools(serve):
    first, second = serve(), serve()
    episode = first.reset(tools=[TOOL])
    first.step(episode, "ls", 1)
    second.step(episode, "ls", 2)
    assert prompts(first) == prompts(second)


def test_a_fork_keeps_its_tools_and_a_fork_or_replay_refuses_new_tools(service):
    run = service.run()
    episode = service.reset(run, tools=[TOOL])
    service.step(episode, "ls", 1)
    source = {"episode": episode, "step": 1}
    fork = service.reset(run, fork=source)
    assert [tool.name for tool in service.ledger.episode(fork).opening.tools] == ["read"]
    for kind in ("fork", "replay"):
        body = {"run": run, kind: source, "tools": [TOOL]}
        answer = service.http("POST", "/episodes", body)
        assert answer.status_code == 422
        assert "takes tools from it" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ({**TOOL, "name": "two words"}, "pattern"),
        ({**TOOL, "input_schema": {"type": "object", "pattern": "("}}, "missing )"),
        ({**TOOL, "input_schema": {"type": "object", "$ref": "http://127.0.0.1:9"}}, "127.0.0.1"),
        (
            {**TOOL, "input_schema": {"type": "object", "maxProperties": 2**60}},
            "smaller number",
        ),
    ],
    ids=["name", "pattern", "elsewhere", "number"],
)
def test_an_episode_with_an_invalid_tool_is_refused(service, tool, problem):
    answer = service.http("POST", "/episodes", {"run": service.run(), "tools": [tool]})
    assert answer.status_code == 422
    assert problem in answer.json()["error"]["message"]
