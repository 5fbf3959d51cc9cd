"""Shapes of weights are compared with those of their class, before any weight is read."""

import json
import shutil

import pytest

from accepting import accepts
from agentworld.errors import InputError
from make.weights import weights

pytestmark = pytest.mark.compute


@pytest.fixture
def check_shapes():
    from agentworld.train.shapes import check_shapes

    return check_shapes


@pytest.fixture
def model(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "model")


def shapes_of(model):
    from agentworld.storage.weights import read_tensors

    tensors = read_tensors(model / "model.safetensors")
    return {name: list(tensor.shape) for name, tensor in tensors.items()}


def change(model, **fields):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | fields))


def test_weights_with_the_shapes_of_their_class_are_accepted(model, check_shapes):
    assert accepts(check_shapes, model)


def test_weights_split_over_several_files_are_checked_together(model, check_shapes):
    shapes = shapes_of(model)
    first_shapes = dict(list(shapes.items())[:7])
    other_shapes = {name: shape for name, shape in shapes.items() if name not in first_shapes}
    (model / "model.safetensors").unlink()
    (model / "model-00001-of-00002.safetensors").write_bytes(weights(**first_shapes))
    assert not accepts(check_shapes, model)
    (model / "model-00002-of-00002.safetensors").write_bytes(weights(**other_shapes))
    assert accepts(check_shapes, model)


def test_a_weight_of_the_wrong_shape_is_refused_by_name(model, check_shapes):
    shapes = shapes_of(model) | {"model.norm.weight": [65]}
    (model / "model.safetensors").write_bytes(weights(**shapes))
    words = r"another shape 1 of the weights of Qwen3ForCausalLM \(model\.norm\.weight\)"
    with pytest.raises(InputError, match=words):
        check_shapes(model)


def test_missing_weights_are_refused_with_their_number_and_some_names(model, check_shapes):
    (model / "model.safetensors").write_bytes(weights(other=[3]))
    words = r"lacks 25 of the weights of Qwen3ForCausalLM \(lm_head\.weight, .*\.\.\.\); restore"
    with pytest.raises(InputError, match=words):
        check_shapes(model)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_hidden_layers": "two"},
        {"hidden_size": -1},
        {"hidden_size": 0},
        {"num_attention_heads": 0},
        {"layer_types": ["nonsense"] * 2},
    ],
    ids=str,
)
def test_a_config_that_makes_no_model_is_refused(model, check_shapes, fields):
    change(model, **fields)
    with pytest.raises(InputError, match=r"config\.json"):
        check_shapes(model)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "of-tomorrow", "architectures": ["OfTomorrow"]},
        {"architectures": ["OfTomorrow"]},
        {"quantization_config": {"quant_method": "awq", "bits": 4}},
    ],
    ids=["an unknown type", "an unknown class", "quantised"],
)
def test_a_model_that_transformers_cannot_build_passes_the_shape_check(model, check_shapes, fields):
    change(model, **fields)
    (model / "model.safetensors").write_bytes(weights(other=[3]))
    assert accepts(check_shapes, model)


SMALL = {
    **dict.fromkeys(("hidden_size", "intermediate_size"), 32),
    **dict.fromkeys(("head_dim", "moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 16),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "v_head_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 8),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads"), 2),
    **dict.fromkeys(("linear_num_value_heads", "linear_num_key_heads", "num_experts_per_tok"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    "vocab_size": 64,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}
"""Small sizes of models of any family, by each family's field names."""


@pytest.mark.parametrize(
    "name",
    [
        "LlamaForCausalLM",
        "Gemma3ForCausalLM",
        "GptOssForCausalLM",
        "DeepseekV3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3_5MoeForCausalLM",
    ],
)
def test_fused_and_tied_weights_of_each_family_are_checked(tmp_path, check_shapes, name):
    import transformers

    model_class = getattr(transformers, name)
    model = tmp_path / "model"
    model_class(model_class.config_class(**SMALL)).save_pretrained(model)
    assert accepts(check_shapes, model)
    shapes = shapes_of(model)
    (model / "model.safetensors").write_bytes(weights(**shapes))
    assert accepts(check_shapes, model)
    changed_name = next(weight_name for weight_name in shapes if "layers.1." in weight_name)
    (model / "model.safetensors").write_bytes(weights(**{**shapes, changed_name: [1]}))
    with pytest.raises(InputError):
        check_shapes(model)
