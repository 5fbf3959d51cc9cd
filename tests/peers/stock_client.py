"""The stock OpenEnv client on one connection: `python -m peers.stock_client async|sync URL CALLS`.

CALLS is a JSON list of `[method, arguments]`; printed is the list of what they gave or raised.
"""

import asyncio
import json
import sys
from dataclasses import asdict, is_dataclass

from openenv.core import GenericEnvClient

Calls = list[tuple[str, dict[str, object]]]


async def talk(url: str, calls: Calls) -> list[object]:
    outcomes: list[object] = []
    async with GenericEnvClient(base_url=url) as world:
        for method, arguments in calls:
            try:
                outcomes.append(_plain(await getattr(world, method)(**arguments)))
            except RuntimeError as error:
                outcomes.append(f"RuntimeError: {error}")
    return outcomes


def talk_in_sync(url: str, calls: Calls) -> list[object]:
    outcomes: list[object] = []
    with GenericEnvClient(base_url=url).sync() as world:
        for method, arguments in calls:
            try:
                outcomes.append(_plain(getattr(world, method)(**arguments)))
            except RuntimeError as error:
                outcomes.append(f"RuntimeError: {error}")
    return outcomes


def _plain(result: object) -> object:
    return asdict(result) if is_dataclass(result) else result


def main(style: str, url: str, text: str) -> None:
    calls: Calls = json.loads(text)
    print(
        json.dumps(talk_in_sync(url, calls) if style == "sync" else asyncio.run(talk(url, calls)))
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
