"""Scripted MCP servers as plain processes, without a sandbox."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial

from agentworld.domains.mcp.connection import connect_process
from agentworld.domains.mcp.environment import McpEnvironment, Server
from agentworld.domains.mcp.reset import StateAccess
from agentworld.domains.mcp.supply import ProcessSupply

_LOOP = r"""
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
SERVER = (
    r"""
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

"""
    + _LOOP
)

COUNTER = (
    r"""
import json, sys

flaw, _, num_resets = sys.argv[1].partition(":")
total = calls = resets = 0
is_on = False
OBJECT = {"type": "object", "properties": {}}


def call(name):
    global total, calls, resets, is_on
    calls += 1
    is_on ^= name == "switch"
    if name == "add":
        total += 1
    if name == "clear":
        resets += 1
        if flaw != "wears-out" or resets <= int(num_resets):
            total = 0
        if flaw == "refuses":
            return {"content": [{"type": "text", "text": "locked"}], "isError": True}
    shown = {"add": total, "show": total, "clear": "cleared", "calls": calls,
             "switch": is_on}
    if name not in shown or flaw == "idle":
        return None
    return {"content": [{"type": "text", "text": str(shown[name])}]}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "counter", "version": "1"}}
    if method == "tools/list":
        names = ["add", "show", "clear"] + [name for name in ("calls", "switch") if name == flaw]
        return {"tools": [{"name": name, "inputSchema": OBJECT} for name in names]}
    if method == "tools/call":
        return call(params["name"])

"""
    + _LOOP
)


def command(*more_tools: str) -> tuple[str, ...]:
    """The command line of the server above, with further tools that it refuses to run."""
    return (sys.executable, "-I", "-S", "-c", SERVER, *more_tools)


LIBRARY = (
    r"""
import json, sys

BOOKS = {"book://a": {"text": "kolu"}, "book://b": {"blob": "AAAA"}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": "library", "version": "1"}}
    if method == "tools/list":
        return {"tools": []}
    if method == "resources/list":
        first, *others = [{"uri": uri, "name": uri[-1]} for uri in BOOKS]
        return {"resources": others} if "cursor" in params else {
            "resources": [first], "nextCursor": "1"}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "book://{name}", "name": "book"}]}
    if method == "resources/read" and params["uri"] in BOOKS:
        return {"contents": [{"uri": params["uri"], **BOOKS[params["uri"]]}]}

"""
    + _LOOP
)


def library() -> tuple[str, ...]:
    """The command line of a server with two resources, each on a page of its own."""
    return (sys.executable, "-I", "-S", "-c", LIBRARY)


def counter(flaw: str = "") -> tuple[str, ...]:
    """The command line of a server that adds up, and can be reset.

    Its flaw is a tool whose result no reset changes (`calls` counts, `switch` alternates), that it
    refuses to be reset (`refuses`) or every call (`idle`), or that it can be reset at most N times
    (`wears-out:N`).
    """
    return (sys.executable, "-I", "-S", "-c", COUNTER, flaw)


class PlainServer:
    """See `ServerProcess`."""

    def __init__(self, words: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        try:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
            )
        except OSError:
            self._errors.close()
            raise
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


class Started(list[PlainServer]):
    """Starts servers, and keeps them."""

    def start(self, words: Sequence[str]) -> PlainServer:
        """A new process."""
        self.append(PlainServer(words))
        return self[-1]

    @property
    def num_running(self) -> int:
        """The number of processes that have not ended."""
        return sum(server.process.poll() is None for server in self)


def environment(
    commands: Mapping[str, Sequence[str]],
    started: Started,
    access: StateAccess | None = None,
    seconds: float = 60.0,
) -> McpEnvironment:
    """An environment of plain processes."""

    def server(name: str, words: Sequence[str]) -> Server:
        connect = partial(connect_process, name, partial(started.start, words), seconds)
        return Server(ProcessSupply(name, connect, access), access)

    servers = {name: server(name, words) for name, words in commands.items()}
    return McpEnvironment(servers, domain="mcp")
