"""Templates of other models: the assistant's answers are trained, or the template is refused."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from agentworld.errors import InputError
from agentworld.records.message import Message
from agentworld.rendering.messages import exchange
from agentworld.steps.run import run_by_name
from agentworld.train.encode import Conversation, encode
from agentworld.train.parent import Parent
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
"""Without the marks, as no family writes it."""


@pytest.fixture
def model(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "model")


@pytest.fixture
def load():
    from agentworld.train.model import load_model

    return lambda folder, chat_template=None: load_model(Parent(folder, None, chat_template))


def template(model, text):
    (model / "chat_template.jinja").write_text(text)
    return model


def is_one_sentence(error):
    message = str(error.value)
    return "\n" not in message and not re.search(r"\. [A-Z]", message)


def trained_texts(language_model, messages, *targets):
    """The texts that a loss counts, one for each run of tokens."""
    (row,) = encode(language_model.tokenizer, [Conversation(messages, targets)])
    runs = np.split(row.input_ids, np.flatnonzero(np.diff(row.is_target)) + 1)
    texts = [language_model.tokenizer.decode(run) for run in runs]
    return texts[0 if row.is_target[0] else 1 :: 2]


CHAT = [
    Message(role="system", content="You simulate."),
    *exchange("ls", "notes.txt"),
    *exchange("cat it", " two words \n"),
    *exchange("ls", "notes.txt"),
]


def test_targets_of_a_template_unknown_to_trl_are_located_by_rendering(model, load):
    marked_model = load(template(model, MARKED))
    assert trained_texts(marked_model, CHAT, 0, 1, 2) == [
        "notes.txt<|end|>",
        " two words \n<|end|>",
        "notes.txt<|end|>",
    ]
    unmarked_model = load(template(model, UNMARKED))
    assert unmarked_model.tokenizer.chat_template == UNMARKED
    for targets in [(0, 1, 2), (1,), (2,), ()]:
        rows = [
            next(encode(language_model.tokenizer, [Conversation(CHAT, targets)]))
            for language_model in (marked_model, unmarked_model)
        ]
        assert np.array_equal(rows[0].input_ids, rows[1].input_ids)
        assert np.array_equal(rows[0].is_target, rows[1].is_target)


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_a_target_is_the_trimmed_answer_with_its_end_token(model, load):
    language_model = load(template(model, CHATML))
    end = language_model.tokenizer.eos_token
    assert trained_texts(language_model, CHAT, 0, 1) == [f"notes.txt{end}", f"two words{end}"]


def test_a_template_whose_answer_does_not_follow_its_prompt_is_refused_before_training(
    model, tmp_path
):
    thinking_template = UNMARKED.replace(
        "<|assistant|>{% endif %}", "<|assistant|>thinking{% endif %}"
    )
    base = str(template(model, thinking_template))
    with pytest.raises(InputError, match="elsewhere than right after its prompt") as error:
        run_by_name("cpt", *training.training(tmp_path / "store", model={"base": base}))
    assert is_one_sentence(error)
    assert f"error: {error.value}\n" in GUIDE.read_text().replace("/models/my-base", base)
    assert not list(tmp_path.glob("store/steps/cpt/*/checkpoint*"))


def test_the_recipes_chat_template_replaces_the_models_template(model, load):
    language_model = load(template(model, ALL_CONTENTS), UNMARKED)
    assert language_model.tokenizer.chat_template == UNMARKED
    assert trained_texts(language_model, CHAT, 0) == ["notes.txt<|end|>"]


def test_a_template_with_generation_marks_is_used_unchanged(model, load):
    assert load(template(model, MARKED)).tokenizer.chat_template == MARKED


def test_a_template_of_a_known_family_is_replaced_by_trls_training_template(model, load):
    from trl.chat_template_utils import qwen2_5_chat_template, qwen2_5_training_chat_template

    language_model = load(template(model, qwen2_5_chat_template))
    unmarked_template = re.sub(r"{%-? (end)?generation -?%}", "", qwen2_5_training_chat_template)
    assert re.sub(
        r"{%-? (if true|endif) -?%}", "", language_model.tokenizer.chat_template
    ) == re.sub(r"{%-? endif -?%}", "", unmarked_template)


ALL_CONTENTS = "{% for m in messages %}{{ m.content }}{% endfor %}"
WRONG_TEMPLATES = {
    "nothing is marked": (ALL_CONTENTS + "{% generation %}{% endgeneration %}", "like the user's"),
    "all is marked": ("{% generation %}" + ALL_CONTENTS + "{% endgeneration %}", "like the user's"),
    "no system is known": (MARKED + "{{ raise_exception('no system') }}", r"\(no system\)"),
    "there is none": ("", "has no chat template"),
}


@pytest.mark.parametrize(("text", "words"), WRONG_TEMPLATES.values(), ids=WRONG_TEMPLATES)
def test_a_template_without_usable_answer_marks_is_refused_in_one_sentence(
    model, load, text, words
):
    with pytest.raises(InputError, match=words) as error:
        load(template(model, text))
    assert is_one_sentence(error)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_model_with_a_corrupt_file_is_refused(model, load, name):
    (template(model, MARKED) / name).write_bytes(b"{garbage" * 9)
    with pytest.raises(InputError, match="has no causal LM that can be loaded"):
        load(model)
