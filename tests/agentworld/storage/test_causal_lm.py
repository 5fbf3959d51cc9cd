import json

import pytest

from accepting import accepts
from agentworld.errors import InputError
from agentworld.records.simulator import Sampling
from agentworld.storage.causal_lm import check_complete, context_tokens, with_generation_defaults


@pytest.fixture
def model(tmp_path):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "chat_template.jinja").touch()
    write(tmp_path, "config.json", max_position_embeddings=640)
    return tmp_path


def write(folder, file, **values):
    (folder / file).write_text(json.dumps(values))


@pytest.mark.compute
def test_a_trained_model_is_complete(tiny_model):
    check_complete(tiny_model)
    assert context_tokens(tiny_model) == 1024


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", r"has no config\.json"),
        ("model.safetensors", "has no safetensors weights"),
        ("chat_template.jinja", "has no chat template"),
    ],
)
def test_a_missing_file_of_a_model_is_reported(model, file, message):
    check_complete(model)
    (model / file).unlink()
    with pytest.raises(InputError, match=message):
        check_complete(model)


def test_the_error_for_an_adapter_beside_the_weights_names_its_folder(model):
    write(model, "adapter_config.json", r=8)
    with pytest.raises(InputError, match=f"put it into {model}/adapter"):
        check_complete(model)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "chat_template.json"])
def test_a_chat_template_may_be_among_the_settings(model, file):
    (model / "chat_template.jinja").unlink()
    write(model, file, chat_template="{{ messages }}")
    assert accepts(check_complete, model)


def test_the_context_length_of_a_vision_model_is_read_from_its_text_config(model):
    write(model, "config.json", text_config={"max_position_embeddings": 262144})
    assert context_tokens(model) == 262144


def test_the_error_for_a_config_without_context_length_names_the_recipe_field(model):
    write(model, "config.json", hidden_size=8)
    with pytest.raises(InputError, match=r"set simulate\.context_tokens in the recipe"):
        context_tokens(model)


def test_generation_defaults_of_the_model_apply_where_the_recipe_sets_nothing(model):
    write(model, "generation_config.json", do_sample=True, temperature=0.6, top_k=20, min_p=0.1)
    sampling = with_generation_defaults(Sampling(top_p=0.9, max_tokens=7), model)
    assert sampling == Sampling(temperature=0.6, top_k=20, top_p=0.9, max_tokens=7)
    assert with_generation_defaults(Sampling(temperature=0.0), model).temperature == 0


@pytest.mark.parametrize("values", [None, {"temperature": 0.6}, {"do_sample": False}])
def test_generation_defaults_without_do_sample_are_ignored(model, values):
    if values is not None:
        write(model, "generation_config.json", **values)
    assert with_generation_defaults(Sampling(max_tokens=7), model) == Sampling(max_tokens=7)


def test_invalid_generation_defaults_are_refused(model):
    write(model, "generation_config.json", do_sample=True, top_p=7)
    with pytest.raises(InputError, match=r"generation_config\.json cannot be used: top_p"):
        with_generation_defaults(Sampling(), model)
