"""Exploring policies of the shop: a random one over all tools, and one that pursues a task."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from pydantic import JsonValue

from agentworld.domains.base import Call
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.explorers import ScriptedExplorer, pursue
from agentworld.domains.tasks import SolvedTask

_ITEM = re.compile(r'^\{"name":"([a-z]+)"', re.MULTILINE)
_ORDER = re.compile(r'^\{"order":', re.MULTILINE)
_UNKNOWN = 0.1


@dataclass
class Beliefs:
    """The items and orders that an explorer expects in the shop."""

    rng: random.Random
    names: list[str]
    """The names that items of the episode can have."""
    items: list[str] = field(default_factory=list)
    num_orders: int = 0

    def item(self) -> str:
        """The name of an expected item, or in one case of ten any name."""
        is_unknown = not self.items or self.rng.random() < _UNKNOWN
        return self.rng.choice(self.names if is_unknown else self.items)

    def order(self) -> int:
        """The number of an order, sometimes of one that does not exist."""
        return self.rng.randint(1, self.num_orders + (self.rng.random() < _UNKNOWN) or 1)

    def price(self) -> int:
        """A random price."""
        return self.rng.randint(1, 9)

    def stock(self) -> int:
        """A random stock."""
        return self.rng.randint(0, 9)

    def apply(self, call: Call) -> None:
        """Updates the beliefs as if the call succeeded."""
        item = str(call.arguments.get("item", ""))
        if call.name == "add_item" and item not in self.items:
            self.items.append(item)
        elif call.name == "remove_item" and item in self.items:
            self.items.remove(item)
        elif call.name == "create_order":
            self.num_orders += 1


Move = Callable[[Beliefs], dict[str, JsonValue]]


def new_explorer(
    rng: random.Random, solved: SolvedTask, *, pursues_task: bool, num_turns: int
) -> ScriptedExplorer:
    """An explorer of a task's shop that takes at most `num_turns` turns."""
    state = solved.task.initial_state
    beliefs = Beliefs(rng, solved.words.names, _ITEM.findall(state), len(_ORDER.findall(state)))
    actions = _random_calls(beliefs)
    if pursues_task:
        actions = pursue(rng, solved.steps, actions, partial(_perturb, beliefs))
    return ScriptedExplorer(actions, num_turns)


def _random_calls(beliefs: Beliefs) -> Iterator[str]:
    """An endless stream of random calls, mostly about existing items and orders."""
    names, weights = zip(*((name, weight) for name, (weight, _) in _MOVES.items()), strict=True)
    while True:
        (name,) = beliefs.rng.choices(names, weights)
        call = Call(name, _MOVES[name][1](beliefs))
        beliefs.apply(call)
        yield render_calls([call])


def _perturb(beliefs: Beliefs, step: str) -> str:
    """The same call with another value of one argument."""
    ((name, arguments),) = parse_calls(step)
    key = beliefs.rng.choice(list(arguments))
    value = beliefs.rng.choice(beliefs.names) if key == "item" else beliefs.stock()
    return render_calls([Call(name, {**arguments, key: value})])


def _update(beliefs: Beliefs) -> dict[str, JsonValue]:
    changes: dict[str, JsonValue] = {"price": beliefs.price(), "stock": beliefs.stock()}
    names = beliefs.rng.choice((["price"], ["stock"], ["price", "stock"]))
    return {"item": beliefs.item(), **{name: changes[name] for name in names}}


def _new_item(beliefs: Beliefs) -> dict[str, JsonValue]:
    others = [name for name in beliefs.names if name not in beliefs.items]
    item = beliefs.rng.choice(others or beliefs.names)
    return {"item": item, "price": beliefs.price(), "stock": beliefs.stock()}


def _filter(beliefs: Beliefs) -> dict[str, JsonValue]:
    return {"max_stock": beliefs.stock()} if beliefs.rng.random() < 0.5 else {}


_MOVES: dict[str, tuple[float, Move]] = {
    "get_item": (16, lambda beliefs: {"item": beliefs.item()}),
    "list_items": (14, _filter),
    "add_item": (12, _new_item),
    "update_item": (16, _update),
    "remove_item": (5, lambda beliefs: {"item": beliefs.item()}),
    "create_order": (
        12,
        lambda beliefs: {"item": beliefs.item(), "quantity": beliefs.rng.randint(1, 3)},
    ),
    "get_order": (6, lambda beliefs: {"order": beliefs.order()}),
    "list_orders": (8, lambda _: {}),
    "cancel_order": (6, lambda beliefs: {"order": beliefs.order()}),
    "compute_value": (5, lambda _: {}),
}
