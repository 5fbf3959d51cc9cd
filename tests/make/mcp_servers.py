"""MCP servers that do what a test wants, as plain processes: a test's own wall is none."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

SERVER = r"""
import json, os, sys, time

count = 0
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PAGES = [["echo", "count", "promised", "unpromised", "other"], ["broken", "missing", "fail"], [
    "refuse", "hang", "die", "flood", "chatter", *sys.argv[1:]]]
PROMISING = ("promised", "other", "broken", "missing")


def tool(name):
    promise = {"outputSchema": NUMBER} if name in PROMISING else {}
    return {"name": name, "inputSchema": TEXT, **promise}


def call(name, arguments):
    global count
    text = arguments.get("text", "")
    count += name == "count"
    results = {
        "echo": {"content": [{"type": "text", "text": text}]},
        "count": {"content": [{"type": "text", "text": str(count)}]},
        "promised": {"content": [{"type": "text", "text": "{\n \"n\": 1\n}"}],
                     "structuredContent": {"n": 1}},
        "other": {"content": [{"type": "text", "text": "one"}], "structuredContent": {"n": 1}},
        "unpromised": {"content": [{"type": "text", "text": "one"}], "structuredContent": {"n": 1}},
        "broken": {"content": [], "structuredContent": {"n": "one"}},
        "missing": {"content": [{"type": "text", "text": "one"}]},
        "fail": {"content": [{"type": "text", "text": "no such thing"}], "isError": True},
    }
    if name == "hang":
        time.sleep(1000)
    if name == "die":
        sys.stderr.write("out of luck\n")
        os._exit(3)
    if name == "flood":
        return {"content": [{"type": "text", "text": "a" * (2 << 20)}]}
    if name == "chatter":
        print("starting up\n{}", flush=True)
        return results["echo"]
    return results.get(name)


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}}
    if method == "tools/list":
        page = int(params.get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page < 2 else {}
        return {"tools": [tool(name) for name in PAGES[page]], **more}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    if result is None:
        outcome = {"error": {"code": -32000, "message": "not today"}}
    else:
        outcome = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
"""


def command(*more_tools: str) -> tuple[str, ...]:
    """The command line of the server above, with more tools that it refuses to run."""
    return (sys.executable, "-I", "-S", "-c", SERVER, *more_tools)


class PlainServer:
    """See `ServerProcess`."""

    def __init__(self, _: str, words: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def error_tail(self) -> str:
        return os.pread(self._errors.fileno(), 1000, 0).decode().strip()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()
        self._errors.close()
