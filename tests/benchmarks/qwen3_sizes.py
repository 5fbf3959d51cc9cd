"""The two sizes of Qwen3 that are measured on a GPU, and the stage that is used."""

from transformers import Qwen3Config

from agentworld.recipes.train import NextTokenRecipe

_COMMON = {"vocab_size": 151_936, "num_key_value_heads": 8, "head_dim": 128}
QWEN3_06B = Qwen3Config(
    **_COMMON,
    hidden_size=1_024,
    intermediate_size=3_072,
    num_hidden_layers=28,
    num_attention_heads=16,
    tie_word_embeddings=True,
)
QWEN3_8B = Qwen3Config(
    **_COMMON,
    hidden_size=4_096,
    intermediate_size=12_288,
    num_hidden_layers=36,
    num_attention_heads=32,
    tie_word_embeddings=False,
)
RECIPE = NextTokenRecipe(stage="cpt", gradient_checkpointing=False, compile_layers=True)
