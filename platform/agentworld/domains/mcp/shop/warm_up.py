"""Warm-up texts for a new model of a shop: lists of words, and short accounts of items.

From lists of words it learns to copy, and from the accounts to find the last statement about a
name. An episode needs both, and states each fact once in several hundred tokens.
"""

import random
from collections.abc import Iterator
from itertools import chain, islice

from agentworld.domains.copy_warmup import copy_warmup
from agentworld.domains.json_text import encode_json
from agentworld.domains.words import training_words

_SEPARATORS = (" ", '","', '":"', '":', ": ", "\n", '"},{"name":"', ", ")
_MOST = {"price": 9, "stock": 9}
_NUM_LOOKS = 5


def warm_up(num_texts: int, seed: int) -> Iterator[str]:
    """Texts of a seed, alternately a list of words and an account of items."""
    lists = copy_warmup(_SEPARATORS, num_texts, seed)
    rng = random.Random(f"items {seed}")
    accounts = (_account(rng) for _ in range(num_texts))
    return islice(chain.from_iterable(zip(lists, accounts, strict=True)), num_texts)


def _account(rng: random.Random) -> str:
    """The state of a few items at first, and at later looks, some after a change."""
    names = rng.sample(training_words(), rng.choice((2, 3, 3, 4)))
    items = {name: {field: rng.randint(0, most) for field, most in _MOST.items()} for name in names}
    lines = [encode_json({"name": name, **items[name]}) for name in names]
    for _ in range(_NUM_LOOKS):
        name = rng.choice(names)
        fields = rng.sample(sorted(_MOST), rng.choice((0, 0, 1, 1, 2)))
        changes = {field: rng.randint(0, _MOST[field]) for field in sorted(fields)}
        items[name].update(changes)
        lines += [
            encode_json({"item": name, **changes}),
            encode_json({"name": name, **items[name]}),
        ]
    return "\n".join(lines)
