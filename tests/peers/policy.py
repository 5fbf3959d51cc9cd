"""A tiny Qwen3 that calls a tool: a random one never would, so it is fitted to two conversations.

Both read the file and then report a word, the right one and a wrong one: what GRPO has to choose
between. The chat template is Qwen3's own, by which TRL knows how to read a tool call.
"""

from collections.abc import Callable
from importlib.resources import files

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from trl.chat_template_utils import get_training_chat_template

from make.tiny_qwen3 import CHATML_TOKENS, byte_level, shape

WORDS = ("besa", "kolu")
_TEMPLATE = files("trl").joinpath("chat_templates/qwen3_instruct_2507.jinja").read_text()
_NUM_STEPS = 100

Message = dict[str, object]


def fitted_policy(
    instruction: str, bash: Callable[[str], str]
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """The model and its tokenizer; equal seeds of torch give equal weights."""
    conversations = [_conversation(instruction, word) for word in WORDS]
    unread = _tokenizer([])
    texts = [unread.apply_chat_template(c, tools=[bash], tokenize=False) for c in conversations]
    tokenizer = _tokenizer(texts)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}
    model = Qwen3ForCausalLM(shape(tokenizer, **sizes))
    _fit(model, tokenizer, conversations, bash)
    return model, tokenizer


def _conversation(instruction: str, word: str) -> list[Message]:
    return [
        {"role": "user", "content": instruction},
        *_called("cat rimo.txt", "besa\n[0] ~"),
        *_called(f"echo {word}", f"{word}\n[0] ~"),
        {"role": "assistant", "content": "done"},
    ]


def _called(command: str, shown: str) -> list[Message]:
    function = {"name": "bash", "arguments": {"command": command}}
    call = {"type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "bash", "content": shown},
    ]


def _tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    pad, _, end = CHATML_TOKENS
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level(texts, 1024),
        pad_token=pad,
        eos_token=end,
        chat_template=_TEMPLATE,
    )


def _fit(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    conversations: list[list[Message]],
    bash: Callable[[str], str],
) -> None:
    """The assistant's tokens are in the loss, as TRL's own template marks them."""
    batch = tokenizer.apply_chat_template(
        conversations,
        tools=[bash],
        chat_template=get_training_chat_template(tokenizer),
        return_dict=True,
        return_assistant_tokens_mask=True,
        padding=True,
        return_tensors="pt",
    )
    said = torch.as_tensor(batch.pop("assistant_masks")).bool()
    labels = batch["input_ids"].masked_fill(~said, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(_NUM_STEPS):
        model(**batch, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
