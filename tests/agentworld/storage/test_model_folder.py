import json

import pytest

from accepting import accepts
from agentworld.errors import InputError
from agentworld.storage.model_folder import check_safe
from make.weights import weights

INVALID_TEMPLATE = "{% for m in messages %}"


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("LICENSE", "README.md", "plot.PNG", "tokenizer.model"):
        (folder / name).touch()
    (folder / "model.safetensors").write_bytes(weights())
    add_settings(folder, "config.json", architectures=["Qwen3ForCausalLM"], auto_map={})
    add_settings(folder, "tokenizer_config.json", chat_template=None)
    return folder


def add_settings(folder, file, **values):
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(values))


def test_a_model_of_only_weights_and_text_files_is_accepted(model):
    assert accepts(check_safe, model)


@pytest.mark.compute
def test_a_trained_model_is_accepted(tiny_model):
    assert accepts(check_safe, tiny_model)


CODE_FILES = (
    "pytorch_model.bin model.pt model.PTH state.pkl last.ckpt tf_model.h5 flax_model.msgpack"
    " model.gguf model.onnx model.npz modeling.py more/run.sh model.tar lib.so"
).split()


@pytest.mark.parametrize("name", CODE_FILES)
def test_a_file_that_may_contain_code_is_refused(model, name):
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).touch()
    with pytest.raises(InputError, match=rf"{name} may contain code"):
        check_safe(model)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "more/x_config.json"])
@pytest.mark.parametrize(
    "values",
    [
        {"auto_map": {"AutoModelForCausalLM": "somebody/model--modeling.Model"}},
        {"text_config": {"deep": [{"auto_map": {"AutoConfig": "configuration.Config"}}]}},
        {"custom_pipelines": {"text-generation": {"impl": "pipeline.Pipeline"}}},
    ],
    ids=["model", "nested", "pipeline"],
)
def test_settings_that_name_code_are_refused(model, file, values):
    add_settings(model, file, **values)
    with pytest.raises(InputError, match=rf"{file} names code to be run"):
        check_safe(model)


def test_code_in_a_duplicate_key_is_refused(model):
    (model / "config.json").write_text('{"auto_map": {"AutoModel": "a.B"}, "auto_map": null}')
    with pytest.raises(InputError, match=r"names code to be run \(auto_map\)"):
        check_safe(model)


@pytest.mark.parametrize("target", ["../outside.json", "README.md"], ids=["outside", "inside"])
def test_a_link_is_refused_regardless_of_its_target(model, target):
    (model.parent / "outside.json").write_text("{}")
    (model / "linked.json").symlink_to(target)
    with pytest.raises(InputError, match=r"linked\.json is a link"):
        check_safe(model)


@pytest.mark.parametrize(
    "file", ["../other.safetensors", "/a.safetensors", "weights.txt", "missing.safetensors"]
)
def test_an_index_that_names_other_files_than_safetensors_beside_it_is_refused(model, file):
    add_settings(model, "model.safetensors.index.json", weight_map={"lm_head": file})
    with pytest.raises(
        InputError, match=rf"names '{file}', which is not a safetensors file beside"
    ):
        check_safe(model)


def test_an_index_of_existing_weights_is_accepted(model):
    add_settings(model, "model.safetensors.index.json", weight_map={"lm_head": "model.safetensors"})
    assert accepts(check_safe, model)


TEMPLATE_FILES = {
    "chat_template.jinja": lambda folder, text: (folder / "chat_template.jinja").write_text(text),
    "additional_chat_templates/tool.jinja": lambda folder, text: (
        (folder / "additional_chat_templates").mkdir(),
        (folder / "additional_chat_templates/tool.jinja").write_text(text),
    ),
    "chat_template.json": lambda folder, text: add_settings(
        folder, "chat_template.json", chat_template=text
    ),
    "tokenizer_config.json": lambda folder, text: add_settings(
        folder, "tokenizer_config.json", chat_template=[{"name": "default", "template": text}]
    ),
    "processor_config.json": lambda folder, text: add_settings(
        folder, "processor_config.json", chat_template={"default": text}
    ),
}


@pytest.mark.waits
@pytest.mark.parametrize(("file", "write"), TEMPLATE_FILES.items(), ids=TEMPLATE_FILES.keys())
def test_a_template_that_does_not_compile_is_refused_in_any_file(model, file, write):
    write(model, INVALID_TEMPLATE)
    with pytest.raises(InputError, match=rf"{file} has an invalid template"):
        check_safe(model)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "cannot be used"),
        (b'{"chat_template": 1}', "cannot be used: chat_template"),
    ],
    ids=["open", "endless", "no text", "no object", "no template"],
)
def test_settings_that_cannot_be_read_are_refused(model, content, problem):
    (model / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=rf"config\.json {problem}"):
        check_safe(model)
