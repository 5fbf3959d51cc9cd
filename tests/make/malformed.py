"""One complete, minimal record of each format; its observation is `SEEN`."""

import json

SEEN = "SEEN"
_AGENT = {"role": "assistant"}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
_ASKED = {**_AGENT, "content": None, "tool_calls": [_CALL]}
_ANSWER = {"role": "tool", "tool_call_id": "c", "content": SEEN}
_USE = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
_RESULT = {"type": "tool_result", "tool_use_id": "c", "content": SEEN}
_ATIF_AGENT = {"name": "a", "version": "1"}
_ATIF_CALL = {"tool_call_id": "c", "function_name": "f", "arguments": {"a": 1}}
_ATIF_SHOWN = {"results": [{"source_call_id": "c", "content": SEEN}]}
_ATIF_STEP = {"step_id": 1, "source": "agent", "message": "", "observation": _ATIF_SHOWN}
_ATIF_STEP |= {"tool_calls": [_ATIF_CALL]}
_INSPECT_CALL = {"id": "c", "function": "f", "arguments": {"a": 1}}
_INSPECT_ASKED = {**_AGENT, "content": "", "tool_calls": [_INSPECT_CALL]}
_SAMPLE = {"id": "a", "epoch": 1, "input": "Go.", "target": ""}
_SAMPLE |= {"messages": [_INSPECT_ASKED, _ANSWER]}
_TIME = "2026-01-01T00:00:00Z"
_GEN_AI = {
    "operation.name": "execute_tool",
    "tool.name": "f",
    "tool.args": '{"a":1}',
    "output": SEEN,
}
_SPAN = {"name": "f", "context": {"trace_id": 7, "span_id": 8}, "start_time": 1, "end_time": 2}
_SPAN |= {"parent": {"trace_id": None, "span_id": None}}
_SPAN |= {"attributes": {f"gen_ai.{name}": value for name, value in _GEN_AI.items()}}
_MLFLOW_SPAN = {
    "trace_id": "lsL/j1nWp520Nf7Kr/KaOw==",
    "span_id": "XCVRdF5UPks=",
    "parent_span_id": None,
    "name": "f",
    "start_time_unix_nano": 1,
    "end_time_unix_nano": 2,
    "attributes": {
        "mlflow.spanType": '"TOOL"',
        "mlflow.spanInputs": '{"a":1}',
        "mlflow.spanOutputs": json.dumps(SEEN),
    },
}


def _session(number: int, role: str, block: dict[str, object]) -> dict[str, object]:
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": _TIME,
        "message": {"role": role, "content": [block]},
    }


_TRAJECTORY = {"domain": "text", "source": "s", "turns": [{"action": "a", "observation": SEEN}]}

RECORDS: dict[str, list[object]] = {
    "anthropic": [
        {
            "messages": [
                {**_AGENT, "content": [_USE]},
                {"role": "user", "content": [_RESULT]},
            ]
        }
    ],
    "asciinema": [
        {"version": 2, "width": 80, "height": 24},
        [1.0, "i", "a\r"],
        [2.0, "o", SEEN],
    ],
    "atif": [{"schema_version": "ATIF-v1.7", "agent": _ATIF_AGENT, "steps": [_ATIF_STEP]}],
    "chat": [
        {
            "messages": [
                {"role": "user", "content": "Begin."},
                {**_AGENT, "content": "Action: a"},
                {"role": "user", "content": f"Observation: {SEEN}"},
            ]
        }
    ],
    "claude_code": [_session(1, "assistant", _USE), _session(2, "user", _RESULT)],
    "inspect": [{"status": "success", "eval": {"task": "t", "model": "m"}, "samples": [_SAMPLE]}],
    "ledger": [{"kind": "ledger", "place": "line 1", "trajectory": _TRAJECTORY}],
    "messages": [{"messages": [_ASKED, _ANSWER]}],
    "mini_swe_agent": [
        {
            "trajectory_format": "mini-swe-agent-1",
            "info": {},
            "messages": [
                {**_AGENT, "content": "```bash\nls\n```"},
                {
                    "role": "user",
                    "content": f"<returncode>0</returncode>\n<output>\n{SEEN}</output>",
                },
            ],
        }
    ],
    "mlflow": [{"info": {"trace_id": "t", "state": "OK"}, "data": {"spans": [_MLFLOW_SPAN]}}],
    "openhands": [
        {
            "history": [
                {"id": 1, "action": "run", "args": {"command": "ls"}},
                {"id": 2, "cause": 1, "observation": "run", "content": SEEN},
            ]
        }
    ],
    "spans": [_SPAN],
    "steps": [{"action": "a", "observation": SEEN, "id": "e"}],
    "swe_agent": [
        {
            "info": {},
            "trajectory": [{"action": "ls", "observation": SEEN, "thought": "", "response": ""}],
        }
    ],
    "trajectories": [_TRAJECTORY],
}
"""The rows of one episode, by format."""

OPTIONS: dict[str, dict[str, str]] = {
    "asciinema": {"typed_by": "agent"},
    "chat": {"prefix": "Observation: "},
    "steps": {
        "action": "action",
        "observation": "observation",
        "episode": "id",
        "alignment": "same row",
    },
}
"""The required options, by format."""


def lines_of(form: str, observation: str = SEEN, name: str = "e") -> bytes:
    """The lines of an episode with this observation; a table's have a name."""
    rows = [json.dumps(row).replace('"id": "e"', f'"id": "{name}"') for row in RECORDS[form]]
    return "".join(row.replace(SEEN, observation) + "\n" for row in rows).encode()
