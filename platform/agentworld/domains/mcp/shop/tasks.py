"""Tasks for an agent in the shop, and the shop's items and orders at their start.

A task succeeds if the database is in the state that its solution leaves: the same items and orders,
and no other change. In a transcript, the first `get_item` of the task's item closes the episode.
"""

import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import JsonValue

from agentworld.domains.base import Call
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.mcp.observation import result_text
from agentworld.domains.mcp.shop.server import Shop, as_text, call
from agentworld.domains.mcp.shop.tools import listed_tools
from agentworld.domains.tasks import NO_GOAL, Goal, SolvedTask, new_task
from agentworld.domains.words import EpisodeWords, episode_words
from agentworld.records.task import SuccessRule

NAME = "mcp"
_MOST_PRICE = 9
_MOST_STOCK = 9


class _Request(NamedTuple):
    """The instruction of a task, and the calls that solve it."""

    instruction: str
    calls: tuple[Call, ...]


class _Start(NamedTuple):
    """The items and orders at the start of a task."""

    items: dict[str, tuple[int, int]]
    """Price and stock by name."""
    orders: list[tuple[str, int]]
    """Items and quantities; all orders are open, and numbered from 1."""

    @property
    def state(self) -> str:
        items = [
            {"name": name, "price": p, "stock": s} for name, (p, s) in sorted(self.items.items())
        ]
        orders = [
            {"order": number, "item": item, "quantity": quantity, "status": "open"}
            for number, (item, quantity) in enumerate(self.orders, start=1)
        ]
        return "\n".join(map(as_text, [*items, *orders]))


def solved_task(seed: int, *, held_out: bool, has_goal: bool = True) -> SolvedTask:
    """The task of a seed, always the same. Without a goal, no action closes it."""
    rng = random.Random(f"shop {seed} {held_out}")
    words = episode_words(rng, held_out=held_out)
    start = _make_start(rng, words)
    family = rng.choice(list(_MAKERS)) if has_goal else "explore"
    request = _MAKERS[family](rng, words, start) if has_goal else None
    goal = _goal(request, start.state) if request else NO_GOAL
    task = new_task(
        f"{NAME}-shop",
        goal,
        domain=NAME,
        family=family,
        initial_state=start.state,
        seed=seed,
        held_out=held_out,
    )
    return SolvedTask(task, words, goal.steps)


def answer(shop: Shop, action: str) -> str:
    """The observation of calls, computed without a server process."""
    results = [
        call(shop, listed_tools(), name, dict(fields)) for name, fields in parse_calls(action)
    ]
    return "\n".join(map(_text_of, results))


def _text_of(result: dict[str, Any]) -> str:
    return result_text(result["content"], is_error=result["isError"])


def _goal(request: _Request, state: str) -> Goal:
    """The goal of a request; its output and state come from running the calls in a shop."""
    steps = tuple(render_calls([step]) for step in request.calls)
    shop = Shop(state)
    *_, output = [answer(shop, step) for step in steps]
    success = SuccessRule(closing=re.escape(steps[-1]), output=output, state=shop.state())
    return Goal(request.instruction, success, steps)


def _make_start(rng: random.Random, words: EpisodeWords) -> _Start:
    names = rng.sample(words.names, rng.choice((2, 3, 3, 4)))
    items = {name: (rng.randint(1, _MOST_PRICE), rng.randint(0, _MOST_STOCK)) for name in names}
    orders = [(rng.choice(names), rng.randint(1, 3)) for _ in range(rng.choice((0, 1, 1, 2)))]
    return _Start(items, orders)


def _add(rng: random.Random, words: EpisodeWords, start: _Start) -> _Request:
    item = rng.choice([name for name in words.names if name not in start.items])
    price, stock = rng.randint(1, _MOST_PRICE), rng.randint(0, _MOST_STOCK)
    fields: dict[str, JsonValue] = {"item": item, "price": price, "stock": stock}
    return _changes(
        f"add {item} at price {price} with stock {stock}", item, Call("add_item", fields)
    )


def _reprice(rng: random.Random, _: EpisodeWords, start: _Start) -> _Request:
    item = rng.choice(list(start.items))
    price = rng.choice([n for n in range(1, _MOST_PRICE + 1) if n != start.items[item][0]])
    return _changes(
        f"set the price of {item} to {price}",
        item,
        Call("update_item", {"item": item, "price": price}),
    )


def _restock(rng: random.Random, _: EpisodeWords, start: _Start) -> _Request:
    item = rng.choice(list(start.items))
    stock = rng.choice([n for n in range(_MOST_STOCK + 1) if n != start.items[item][1]])
    return _changes(
        f"set the stock of {item} to {stock}",
        item,
        Call("update_item", {"item": item, "stock": stock}),
    )


def _order(rng: random.Random, _: EpisodeWords, start: _Start) -> _Request:
    item, stock = rng.choice(list(start.items)), rng.randint(1, _MOST_STOCK)
    start.items[item] = (start.items[item][0], stock)
    quantity = rng.randint(1, stock)
    fields: dict[str, JsonValue] = {"item": item, "quantity": quantity}
    return _changes(f"order {quantity} {item}", item, Call("create_order", fields))


def _cancel(rng: random.Random, _: EpisodeWords, start: _Start) -> _Request:
    start.orders.append((rng.choice(list(start.items)), rng.randint(1, 3)))
    number = rng.randint(1, len(start.orders))
    item, _quantity = start.orders[number - 1]
    return _changes(
        f"cancel order {number} and show {item}", item, Call("cancel_order", {"order": number})
    )


def _remove(rng: random.Random, _: EpisodeWords, start: _Start) -> _Request:
    item = rng.choice(list(start.items))
    start.orders[:] = [order for order in start.orders if order[0] != item]
    return _changes(f"remove {item}", item, Call("remove_item", {"item": item}))


def _changes(instruction: str, item: str, change: Call) -> _Request:
    return _Request(instruction, (change, Call("get_item", {"item": item})))


_MAKERS: dict[str, Callable[[random.Random, EpisodeWords, _Start], _Request]] = {
    "add": _add,
    "reprice": _reprice,
    "restock": _restock,
    "order": _order,
    "cancel": _cancel,
    "remove": _remove,
}
