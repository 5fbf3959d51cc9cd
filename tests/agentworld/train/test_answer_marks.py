"""Templates of models from elsewhere: what the assistant wrote is trained, or nothing is."""

import re
import shutil
from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.steps.run import run_by_name
from make import training

pytestmark = pytest.mark.compute

MARKED = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}"
    "{%- generation -%}{{ m.content }}<|end|>{%- endgeneration -%}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
GUIDE = Path(__file__).parents[3] / "docs/guides/training.md"
UNMARKED = re.sub(r"{%- (end)?generation -%}", "", MARKED)
"""As no family writes it."""


@pytest.fixture
def model(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "model")


@pytest.fixture
def load():
    from agentworld.train.model import load_model

    return load_model


def template(model, text):
    (model / "chat_template.jinja").write_text(text)
    return model


def one_sentence(refused):
    said = str(refused.value)
    return "\n" not in said and not re.search(r"\. [A-Z]", said)


def test_a_template_that_trl_does_not_know_is_refused_in_one_sentence_before_the_training(
    model, tmp_path
):
    base = str(template(model, UNMARKED))
    with pytest.raises(InputError, match="does not mark what the assistant wrote") as refused:
        run_by_name("cpt", *training.training(tmp_path / "store", model={"base": base}))
    assert one_sentence(refused)
    assert f"error: {refused.value}\n" in GUIDE.read_text().replace("/models/my-base", base)
    assert not list(tmp_path.glob("store/steps/cpt/*/checkpoint*"))


def test_a_template_with_marks_of_its_own_is_taken_however_it_trims_blanks(model, load):
    assert load(template(model, MARKED)).tokenizer.chat_template == MARKED


def test_a_template_of_a_known_family_gets_the_marks_that_trl_has_for_it(model, load):
    from trl.chat_template_utils import qwen2_5_chat_template, qwen2_5_training_chat_template

    loaded = load(template(model, qwen2_5_chat_template))
    assert loaded.tokenizer.chat_template == qwen2_5_training_chat_template


ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"
WRONG = {
    "nothing is marked": (ALL + "{% generation %}{% endgeneration %}", "marks '' where the"),
    "all is marked": ("{% generation %}" + ALL + "{% endgeneration %}", "marks '' where the"),
    "no system is known": (MARKED + "{{ raise_exception('no system') }}", r"\(no system\)"),
    "there is none": ("", "has no chat template"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_a_template_whose_marks_are_wrong_is_refused_before_the_training(model, load, text, words):
    with pytest.raises(InputError, match=words) as refused:
        load(template(model, text))
    assert one_sentence(refused)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_file_that_is_none_of_a_model_is_refused_in_one_sentence(model, load, name):
    (template(model, MARKED) / name).write_bytes(b"{garbage" * 9)
    with pytest.raises(InputError, match="holds no causal LM that can be loaded"):
        load(model)
