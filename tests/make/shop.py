"""Logs of agents that ask a shop for prices, and an untrained checkpoint that can learn the
responses.

A price belongs to its item, so that a model that has learned the items can answer any list of them;
a whole list is rarely repeated.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from make.tiny_qwen3 import byte_level, shape

_ITEMS = (
    "anvil axle bell bolt broom brush candle chain chisel clamp crate drill file fork gear glue"
    " hammer hinge hook hose jack kettle knob ladder lamp lock mallet mirror mop nail paint pipe"
    " plank pump rake rope ruler saw screw spade spring tape torch tray valve vice washer wheel"
    " wire wrench"
).split()
_PRICES = dict(zip(_ITEMS, random.Random(0).sample(range(10, 100), len(_ITEMS)), strict=True))
_TOOL = {
    "name": "prices",
    "description": "Prices of items.",
    "parameters": {"type": "object", "properties": {"items": {"type": "array"}}},
}
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_PER_TASK = 2
_TURNS = 3


def logs(num: int) -> Iterator[str]:
    """Lines of JSON in the form of OpenAI's messages, two trials of each task."""
    for number in range(num):
        yield json.dumps(_log(number)) + "\n"


def answer(items: list[str]) -> str:
    """The shop's response."""
    return "\n".join(f"{item} {_PRICES[item]}" for item in items)


def checkpoint(folder: Path) -> Path:
    """A Qwen3 of two layers with random weights and a tokenizer of its own."""
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = shape(
        tokenizer,
        hidden_size=128,
        intermediate_size=256,
        num_attention_heads=2,
        head_dim=64,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


def _log(number: int) -> dict[str, object]:
    rng = random.Random(number)
    messages: list[dict[str, object]] = [{"role": "user", "content": "What do these cost?"}]
    for turn in range(_TURNS):
        items = rng.sample(_ITEMS, 3)
        call = {"name": "prices", "arguments": json.dumps({"items": items})}
        calls = [{"id": f"call-{turn}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"call-{turn}", "content": answer(items)})
    tools = [{"type": "function", "function": _TOOL}]
    return {"task_id": f"task-{number // _PER_TASK}", "tools": tools, "messages": messages}


def _tokenizer() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level(logs(300), 704),
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        chat_template=_CHATML,
    )
