"""A tiny random Qwen3 with a tokenizer and a chat template, for tests of real engines."""

from pathlib import Path

import torch
import transformers
from tokenizers import Regex, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from make.tiny_qwen3 import CHATML_TOKENS, byte_level, shape

SPECIAL_TOKENS = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Without it, `transformers serve` uses Qwen3's own, does not find its anchor and responds with the
# prompt and the special tokens.
RESPONSE_TEMPLATE = {
    "start_anchor": "<|assistant|>",
    "fields": {"content": {"close": "<|end|>", "content_args": {"strip": False}}},
}
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SHARED_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "head_dim"),
    *("num_attention_heads", "num_key_value_heads", "max_position_embeddings"),
    *("tie_word_embeddings", "initializer_range", "eos_token_id", "pad_token_id"),
)
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_GATED_DELTA = {
    "layer_types": ["linear_attention", "full_attention"],
    **{f"linear_num_{name}_heads": 2 for name in ("key", "value")},
    # A size that vLLM's CPU kernels support; 32 is not.
    **{f"linear_{name}_head_dim": 128 for name in ("key", "value")},
}
_FAMILY_SIZES = {
    "Qwen3": {},
    "Qwen3Moe": _EXPERTS,
    "Qwen3_5": _GATED_DELTA,
    "Qwen3_5Moe": _EXPERTS | _GATED_DELTA | {"shared_expert_intermediate_size": 32},
}
_CORPUS = ["echo kolu tane > rimo.txt", "cat rimo.txt", "kolu tane", "[0] ~", "ls", "pwd", "grep"]


def tiny_model(
    folder: Path,
    *,
    num_layers: int = 2,
    hidden_size: int = 64,
    vocabulary_size: int = 384,
    max_shard_size: str = "5GB",
) -> Path:
    """Writes the model's files into a folder; the same arguments write the same weights."""
    tokenizer = _tokenizer(vocabulary_size)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(_config(tokenizer, num_layers, hidden_size))
    _shape_answers(model, tokenizer)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return folder


def tiny_family(folder: Path, family: str) -> Path:
    """Two layers of a family of `_FAMILY_SIZES` with random weights, which write ASCII."""
    tokenizer = _tokenizer(384)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    name = f"{family}TextConfig" if family.startswith("Qwen3_5") else f"{family}Config"
    qwen3 = _config(tokenizer, num_layers=2, hidden_size=64)
    sizes = {key: getattr(qwen3, key) for key in _SHARED_SIZES}
    config = getattr(transformers, name)(**sizes | _FAMILY_SIZES[family])
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    _shape_answers(model, tokenizer)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


def tiny_qwen3(folder: Path) -> Path:
    """Qwen3 with two layers, and a tokenizer and a chat template of its family, without marks."""
    from trl.chat_template_utils import qwen3_chat_template

    words = pre_tokenizers.Split(Regex(_QWEN_WORDS), "isolated")
    parts = [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    texts = [*_CORPUS, "<think>\n\n</think>\n\n"] * 3
    tokenizer = byte_level(texts, 400, pre_tokenizer=pre_tokenizers.Sequence(parts))
    fast_tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|endoftext|>",  # as in a base model, whose template ends responses otherwise
        chat_template=qwen3_chat_template,
        additional_special_tokens=list(CHATML_TOKENS[1:]),
    )
    fast_tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(_config(fast_tokenizer, num_layers=2, hidden_size=64))
    model.generation_config.eos_token_id = fast_tokenizer.eos_token_id
    model.save_pretrained(folder)
    return folder


def _shape_answers(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Makes a random model write ASCII and end its responses."""
    weight = model.get_output_embeddings().weight
    texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    with torch.no_grad():
        for token, text in enumerate(texts):
            if text in SPECIAL_TOKENS or not text.isprintable() or not text.isascii():
                weight[token] *= 2 if token == tokenizer.eos_token_id else 0


def _config(tokenizer: PreTrainedTokenizerFast, num_layers: int, hidden_size: int) -> Qwen3Config:
    return shape(
        tokenizer,
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=num_layers,
        head_dim=32,  # the minimum of vLLM's attention on a CPU
        tie_word_embeddings=False,
        # A large spread separates the likeliest token from the next, independent of the order of
        # sums.
        initializer_range=0.3,
    )


def _tokenizer(vocabulary_size: int) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level(_CORPUS, vocabulary_size, SPECIAL_TOKENS),
        pad_token="<|pad|>",
        eos_token="<|end|>",
        chat_template=CHAT_TEMPLATE,
        response_template=RESPONSE_TEMPLATE,
        additional_special_tokens=SPECIAL_TOKENS[1:4],
    )
