"""A causal LM and its tokenizer: a new one from a recipe, or one in a folder."""

from pathlib import Path
from typing import NamedTuple

import torch
from peft import PeftModel
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from agentworld.engine.adapter import ADAPTER, has_adapter
from agentworld.engine.merging import merge_adapter
from agentworld.errors import InputError
from agentworld.recipes.train import LoraRecipe, ModelRecipe, Offload
from agentworld.train.answer_marks import mark_answers
from agentworld.train.answer_spans import end_of_answer
from agentworld.train.distributed import num_ranks, rank
from agentworld.train.lora import add_adapter, merge_layers, save_adapter
from agentworld.train.parent import Parent
from agentworld.train.sharding import load_in_parts, save_model
from agentworld.train.zero import num_elements

_ROPE_THETA = 1_000.0  # enough for a thousand tokens, and sharper for the previous token
_EMBEDDING_SCALE = 0.1  # large compared with what random layers add
_SHARP = 1.5
# Qwen3 normalises queries and keys, which limits how sharply a new model can attend to one token
# among hundreds. With an initial value above 1, copying emerges some hundred steps earlier.


# On a CPU the backward pass of the fused attention takes longer than all of the plain one.
ATTENTION = "sdpa" if torch.cuda.is_available() else "eager"
"""The name in transformers of the attention for padded rows."""


class LanguageModel(NamedTuple):
    """A model that a stage trains and saves."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    adapter: PeftModel | None = None
    """The same model with its trained adapter; null if all weights are trained."""

    @property
    def trained(self) -> PreTrainedModel | PeftModel:
        """The model whose trained weights a trainer saves."""
        return self.adapter or self.model

    @property
    def num_parameters(self) -> int:
        """Shared weights counted once."""
        return sum(num_elements(parameter) for parameter in self.model.parameters())

    def save(self, folder: Path) -> None:
        """Writes safetensors weights, tokenizer, chat template and generation defaults.

        All processes call it, and rank 0 writes. An adapter is written beside the weights of its
        base, and removed from the model.
        """
        if self.adapter is not None:
            save_adapter(self.adapter, folder / ADAPTER)
            self.adapter.unload()
        save_model(self.model, folder)
        if rank() == 0:
            self.tokenizer.save_pretrained(folder)

    def with_adapter(self, recipe: LoraRecipe, seed: int) -> "LanguageModel":
        """The model with a new adapter; only the adapter is trained."""
        return self._replace(adapter=add_adapter(self.model, recipe, seed))

    def merged(self) -> "LanguageModel":
        """The model with its adapter merged into its weights."""
        if self.adapter is None:
            return self
        return LanguageModel(merge_layers(self.adapter), self.tokenizer)


def new_model(recipe: ModelRecipe, tokenizer: PreTrainedTokenizerFast) -> LanguageModel:
    """A Qwen3 with random weights."""
    torch.manual_seed(recipe.seed)
    config = new_config(
        recipe,
        len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen3ForCausalLM(config)
    model.set_attn_implementation(ATTENTION)
    model.model.embed_tokens.weight.data.normal_(0.0, _EMBEDDING_SCALE)
    for name, weight in model.named_parameters():
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            weight.data.fill_(_SHARP)
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return LanguageModel(model, tokenizer)


def new_config(recipe: ModelRecipe, vocabulary_size: int, **tokens: int | None) -> Qwen3Config:
    """The shape of a new model."""
    return Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.intermediate_size,
        num_hidden_layers=recipe.num_layers,
        num_attention_heads=recipe.num_heads,
        num_key_value_heads=recipe.num_key_value_heads,
        head_dim=recipe.head_size,
        max_position_embeddings=recipe.context_tokens,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": _ROPE_THETA},
        bos_token_id=None,
        **tokens,
    )


def load_model(
    parent: Parent, zero_stage: int | None = None, offload: Offload | None = None
) -> LanguageModel:
    """Loads a folder with safetensors weights; executes no code of the folder.

    At ZeRO stage 3 with several processes, each loads only its part of the weights, unless the
    folder has an adapter to merge.
    """
    folder = parent.folder
    if not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder} has no safetensors weights; name the folder of a causal LM")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise _unloadable(folder, error) from error
    if parent.chat_template is not None:
        tokenizer.chat_template = parent.chat_template
    mark_answers(tokenizer, folder)  # before gigabytes are loaded
    try:
        if zero_stage == 3 and num_ranks() > 1 and not has_adapter(folder):
            model = load_in_parts(folder, ATTENTION, offload)
        else:
            model = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation=ATTENTION,
                use_safetensors=True,
                trust_remote_code=False,
            )
            model = merge_adapter(model, folder)
    except (OSError, ValueError, SafetensorError) as error:
        raise _unloadable(folder, error) from error
    _end_answers(model, tokenizer)
    return LanguageModel(model, tokenizer)


def _end_answers(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Makes engines stop where the chat template ends an answer; a base may have another end."""
    end = end_of_answer(tokenizer)
    last = next(
        (
            special_token
            for special_token in tokenizer.all_special_tokens
            if end.endswith(special_token)
        ),
        None,
    )
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    token = tokenizer.convert_tokens_to_ids(last) if last else None
    if token is not None and token not in ends:
        model.generation_config.eos_token_id = [
            token,
            *(token_id for token_id in ends if token_id is not None),
        ]


def _unloadable(folder: Path, error: Exception) -> InputError:
    message = " ".join(str(error).split())[:200]
    return InputError(f"{folder} has no causal LM that can be loaded ({message}); name another")
