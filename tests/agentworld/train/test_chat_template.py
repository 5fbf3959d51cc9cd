"""Hostile and broken templates: transformers renders them in a sandbox, or they are refused."""

import re
import shutil

import pytest
from jinja2.exceptions import SecurityError

from accepting import accepts
from agentworld.errors import InputError
from agentworld.storage.model_folder import check_safe

pytestmark = pytest.mark.compute

HOSTILE = {
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__.keys() }}",
    "imports": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "a formatted string": "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "what it is given": "{{ messages.append(messages[0]) }}",
}


@pytest.fixture
def model(tiny_model, tmp_path):
    """A model folder without its weights, which are not read."""
    return shutil.copytree(tiny_model, tmp_path / "model", ignore=lambda *_: ["model.safetensors"])


@pytest.fixture
def check_renders():
    from agentworld.train import chat_template

    return lambda model: chat_template.check_renders(model, chat_template.load_tokenizer(model))


def test_a_template_that_makes_a_prompt_is_accepted(model, check_renders):
    assert accepts(check_renders, model)


@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_a_template_that_accesses_python_internals_is_refused_as_unsafe(
    model, check_renders, template
):
    from transformers import AutoTokenizer

    (model / "chat_template.jinja").write_text(template)
    check_safe(model)  # it compiles
    messages = [{"role": "user", "content": "ls"}]
    with pytest.raises(SecurityError, match="is unsafe"):
        AutoTokenizer.from_pretrained(model).apply_chat_template(messages, tokenize=False)
    with pytest.raises(InputError, match="makes no prompt of a system's .* is unsafe") as error:
        check_renders(model)
    assert isinstance(error.value.__cause__, SecurityError)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ raise_exception('no system here') }}", "no system here"),
        ("{{ messages[7].content }}", "list object has no element 7"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ range(10 ** 9) | list }}", "Range too big"),
    ],
)
def test_a_template_that_fails_is_refused_with_its_reason(model, check_renders, template, words):
    (model / "chat_template.jinja").write_text(template)
    with pytest.raises(InputError, match=re.escape(words)):
        check_renders(model)


def test_a_tokenizer_that_cannot_be_loaded_is_refused(model, check_renders):
    (model / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="or a tokenizer that makes no prompt"):
        check_renders(model)
