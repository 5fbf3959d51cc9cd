"""Episodes of explorers in a shop in this process: the same tools, without a server."""

import random
from typing import NamedTuple

from agentworld.domains.mcp.shop.explorers import new_explorer
from agentworld.domains.mcp.shop.server import Shop
from agentworld.domains.mcp.shop.tasks import answer, solved_task
from agentworld.domains.tasks import SolvedTask


class ShopTurn(NamedTuple):
    action: str
    observation: str
    before: str
    """The state."""
    after: str


class ShopEpisode(NamedTuple):
    solved: SolvedTask
    turns: list[ShopTurn]


def episode(seed: int, *, pursues_task: bool = False, num_turns: int = 12) -> ShopEpisode:
    """An explorer's actions and observations."""
    solved = solved_task(seed, held_out=False, has_goal=pursues_task)
    explorer = new_explorer(
        random.Random(seed), solved, pursues_task=pursues_task, num_turns=num_turns
    )
    shop = Shop(solved.task.initial_state)
    turns = []
    while (action := explorer.act(None)) is not None:
        before = shop.state()
        turns.append(ShopTurn(action, answer(shop, action), before, shop.state()))
    return ShopEpisode(solved, turns)


def replay(shop_episode: ShopEpisode) -> list[str]:
    """The observations of the same actions in a second run."""
    shop = Shop(shop_episode.solved.task.initial_state)
    return [answer(shop, turn.action) for turn in shop_episode.turns]
