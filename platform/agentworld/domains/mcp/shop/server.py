"""The shop's server: a SQLite database behind ten tools, MCP over stdin and stdout.

It runs by its text alone, `python3 -c TEXT TOOLS`, in a sandbox that has none of our files: so it
imports the standard library alone, and starts in a tenth of the time that the `mcp` package takes
to load. TOOLS has a tool of MCP as JSON on each line. The shop is empty until its state is written.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

STATE_URI = "shop://state"
"""The resource that holds the state; no tool reads it."""
STATE_METHOD = "shop/write_state"
"""The request that replaces the whole state by `params.text`; no tool makes it."""

_SCHEMA = """
CREATE TABLE items (name TEXT PRIMARY KEY, price INTEGER, stock INTEGER);
CREATE TABLE orders (
    number INTEGER PRIMARY KEY, item TEXT, quantity INTEGER, status TEXT, placed_at TEXT
);
"""
_ITEM = re.compile(r'\{"name":"([a-z]+)","price":(\d+),"stock":(\d+)\}')
_ORDER = re.compile(
    r'\{"order":(\d+),"item":"([a-z]+)","quantity":(\d+),"status":"(open|cancelled)"\}'
)
_NAME = re.compile(r"[a-z]{1,40}")
_MOST = 10**9

_Fields = dict[str, Any]


class ToolError(Exception):
    """A call that a tool refuses, in its words."""


class RequestError(Exception):
    """A request that the protocol refuses: a code of JSON-RPC and a message."""


def as_text(fields: _Fields) -> str:
    """JSON without spaces, with its keys in this order."""
    return json.dumps(fields, separators=(",", ":"))


class Shop:
    """Items and orders."""

    def __init__(self, state: str = "") -> None:
        """See `write_state`."""
        self.write_state(state)

    def write_state(self, state: str) -> None:
        """Replaces all items and orders; raises ValueError for a line that is neither of them."""
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.executescript(_SCHEMA)
        for line in state.splitlines():
            if match := _ITEM.fullmatch(line):
                self._write(
                    "INSERT INTO items VALUES (?, ?, ?)", match[1], int(match[2]), int(match[3])
                )
            elif match := _ORDER.fullmatch(line):
                self._add_order(int(match[1]), match[2], int(match[3]), match[4])
            else:
                raise ValueError(f"{line!r} is neither an item nor an order")

    def state(self) -> str:
        """All items and orders as the tools list them, without the times of the orders."""
        return "\n".join(map(as_text, [*self._all_items(), *self._all_orders()]))

    def tool(self, name: str) -> Callable[..., _Fields | str]:
        """The method of a tool: it answers a call's arguments, or raises ToolError."""
        method: Callable[..., _Fields | str] = getattr(self, f"_{name}")
        return method

    def _list_items(self, max_stock: int = _MOST) -> _Fields:
        return {"items": [item for item in self._all_items() if item["stock"] <= max_stock]}

    def _get_item(self, item: str) -> _Fields:
        return dict(self._item(item))

    def _add_item(self, item: str, price: int, stock: int) -> _Fields:
        if not _NAME.fullmatch(item):
            raise ToolError(f"{item!r} is no name: use 1 to 40 letters from a to z")
        if self._rows("SELECT * FROM items WHERE name = ?", item):
            raise ToolError(f"there is an item {item!r} already")
        self._write("INSERT INTO items VALUES (?, ?, ?)", item, price, stock)
        return dict(self._item(item))

    def _update_item(
        self, item: str, price: int | None = None, stock: int | None = None
    ) -> _Fields:
        row = self._item(item)
        if price is None and stock is None:
            raise ToolError("give a price or a stock")
        values = (
            row["price"] if price is None else price,
            row["stock"] if stock is None else stock,
        )
        self._write("UPDATE items SET price = ?, stock = ? WHERE name = ?", *values, item)
        return dict(self._item(item))

    def _remove_item(self, item: str) -> str:
        self._item(item)
        is_open = "SELECT * FROM orders WHERE item = ? AND status = 'open'"
        if rows := self._rows(is_open, item):
            raise ToolError(f"order {rows[0]['number']} of {item!r} is open")
        self._write("DELETE FROM items WHERE name = ?", item)
        return f"removed {item}"

    def _create_order(self, item: str, quantity: int) -> _Fields:
        row = self._item(item)
        if not 0 < quantity <= row["stock"]:
            raise ToolError(f"there are {row['stock']} of {item!r} and not {quantity}")
        self._write("UPDATE items SET stock = stock - ? WHERE name = ?", quantity, item)
        (last,) = self._rows("SELECT max(number) AS number FROM orders")
        number = (last["number"] or 0) + 1
        self._add_order(number, item, quantity, "open")
        return {"order": number, "item": item, "quantity": quantity, "status": "open"}

    def _get_order(self, order: int) -> _Fields:
        row = dict(self._order(order))
        return {"order": row.pop("number"), **row}

    def _list_orders(self, item: str | None = None) -> _Fields:
        return {"orders": [order for order in self._all_orders() if item in (None, order["item"])]}

    def _cancel_order(self, order: int) -> str:
        row = self._order(order)
        if row["status"] != "open":
            raise ToolError(f"order {order} is {row['status']}")
        self._write("UPDATE orders SET status = 'cancelled' WHERE number = ?", order)
        self._write(
            "UPDATE items SET stock = stock + ? WHERE name = ?", row["quantity"], row["item"]
        )
        return f"cancelled order {order}"

    def _compute_value(self) -> _Fields:
        return {"value": sum(item["price"] * item["stock"] for item in self._all_items())}

    def _all_items(self) -> list[_Fields]:
        return [dict(row) for row in self._rows("SELECT * FROM items ORDER BY name")]

    def _all_orders(self) -> list[_Fields]:
        rows = self._rows(
            'SELECT number AS "order", item, quantity, status FROM orders ORDER BY number'
        )
        return [dict(row) for row in rows]

    def _item(self, name: str) -> sqlite3.Row:
        rows = self._rows("SELECT * FROM items WHERE name = ?", name)
        if not rows:
            raise ToolError(f"there is no item {name!r}")
        return rows[0]

    def _order(self, number: int) -> sqlite3.Row:
        rows = self._rows("SELECT * FROM orders WHERE number = ?", number)
        if not rows:
            raise ToolError(f"there is no order {number}")
        return rows[0]

    def _add_order(self, number: int, item: str, quantity: int, status: str) -> None:
        placed_at = datetime.now(UTC).isoformat(timespec="seconds")
        values = (number, item, quantity, status, placed_at)
        self._write("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", *values)

    def _rows(self, query: str, *values: str | int) -> list[sqlite3.Row]:
        return self._database.execute(query, values).fetchall()

    def _write(self, query: str, *values: str | int) -> None:
        self._database.execute(query, values)


def call(shop: Shop, tools: list[_Fields], name: str, arguments: _Fields) -> _Fields:
    """The result of a call, as MCP has it; raises RequestError for an unknown tool."""
    schema = next((tool["inputSchema"] for tool in tools if tool["name"] == name), None)
    if schema is None:
        raise RequestError(-32602, f"Unknown tool: {name}")
    try:
        _check(arguments, schema)
        answer = shop.tool(name)(**arguments)
    except ToolError as error:
        return {"content": [{"type": "text", "text": f"Error: {error}"}], "isError": True}
    if isinstance(answer, str):
        return {"content": [{"type": "text", "text": answer}], "isError": False}
    content = [{"type": "text", "text": as_text(answer)}]
    return {"content": content, "structuredContent": answer, "isError": False}


def _check(arguments: _Fields, schema: _Fields) -> None:
    """What the tools' own schemas ask for: names, texts and whole numbers."""
    for name in schema.get("required", ()):
        if name not in arguments:
            raise ToolError(f"{name} is required")
    for name, value in arguments.items():
        if name not in schema["properties"]:
            raise ToolError(f"{name} is not an argument")
        if schema["properties"][name]["type"] == "string":
            if type(value) is not str:
                raise ToolError(f"{name} is not a text")
        elif type(value) is not int or not 0 <= value <= _MOST:
            raise ToolError(f"{name} is not a whole number from 0 to {_MOST}")


def _answer(shop: Shop, tools: list[_Fields], method: str, params: _Fields) -> _Fields:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            return call(shop, tools, params["name"], params.get("arguments") or {})
        case "resources/list":
            return {"resources": []}  # no agent shall read the state
        case "resources/read" if params.get("uri") == STATE_URI:
            return {"contents": [{"uri": STATE_URI, "text": shop.state()}]}
        case "shop/write_state":
            shop.write_state(params["text"])
            return {}
    raise RequestError(-32601, f"Method not found: {method}")


def main() -> None:
    """Answers requests until the input ends."""
    tools = [json.loads(line) for line in sys.argv[1].splitlines()]
    shop = Shop()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer: _Fields = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = _answer(shop, tools, request["method"], request.get("params") or {})
        except RequestError as error:
            code, message = error.args
            answer["error"] = {"code": code, "message": message}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
