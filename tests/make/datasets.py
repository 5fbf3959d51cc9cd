"""A data set of recordings in a store, made by an import and `prepare`, with hostile text."""

import json
from pathlib import Path

from agentworld.data.imported import import_trajectories
from agentworld.data.prepare import prepare
from agentworld.recipes.data import CollectRecipe, PrepareRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.datasets import StoredDataSet, find_dataset
from agentworld.storage.source import digest_of
from make import records
from make.template import copied

NASTY = (
    "<script>alert(1)</script> \x1b[2J\x1b]52;c;ZXZpbA==\x07 \x7f\r \u202egpj.exe\u2066 \u2028"
    " {{ 7 * 7 }} \" onload='x'"
)
NUM_EPISODES = 60
NUM_BAD = 3
_BAD = ("{}", json.dumps({"messages": [NASTY]}), f"no JSON {NASTY}".replace("\r", " "))


def stored(store: Path, **recipe: object) -> StoredDataSet:
    """The data set that `prepare` makes with this recipe from 60 valid records and 3 invalid
    ones.
    """
    return copied(_stored, store, **recipe)


def _stored(store: Path, **recipe: object) -> StoredDataSet:
    source = store / "logs.jsonl"
    lines = [*map(_line, range(NUM_EPISODES)), *_BAD]
    source.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
    options = {"licence": f"MIT {NASTY}", "source": f"bot {NASTY}"}
    collect = CollectRecipe(
        trajectories=str(source), format="messages", options=options, held_out_share=0.2
    )
    recipe = {"cpt_share": 0.4, "sft_share": 0.3, **recipe}
    collected, data = store / "collected", store / "data"
    digest = import_trajectories(collect, digest_of(str(source)), collected, ignore_progress)
    dataset = prepare(PrepareRecipe.model_validate(recipe), collected, data, ignore_progress)
    _as_step(store, "collect", digest, collected)
    return find_dataset(str(_as_step(store, "prepare", dataset.digest, data)), store)


def _as_step(store: Path, step: str, output: str, result: Path) -> Path:
    """Moves the output into the folder of a finished step."""
    folder = records.finished_step(store, step, output)
    for file in result.iterdir():
        file.replace(folder / file.name)
    result.rmdir()
    return folder


def _line(number: int) -> str:
    """An episode of 1 to 10 turns; some of them echo the action."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "hello"}]
    for turn in range(1 + number % 10):
        words = " ".join(f"word{number}x{turn}x{index}" for index in range(9))
        call = {"name": f"tool{turn % 3}", "arguments": json.dumps({"text": words})}
        observation = (
            f"{call['name']} {words}" if turn % 4 == 3 else f"{words} {NASTY} " * (1 + turn)
        )
        tools = [{"id": str(turn), "function": call}]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": tools},
            {"role": "tool", "tool_call_id": str(turn), "content": observation},
        ]
    return json.dumps({"task_id": f"task {number}", "messages": messages})
