"""Chat templates in the style of many families: the trained text is the observation, byte for byte,
and its end token; a template that cannot be marked so is refused.
"""

# ruff: noqa: RUF001  DeepSeek's tokens are written with other bars

from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.records.message import Message
from agentworld.rendering.messages import exchange, with_thought
from agentworld.rendering.parse import parse_observation

pytestmark = pytest.mark.compute

SPECIAL = (
    "<pad> <s> </s> [INST] [/INST] <|im_start|> <|im_end|> <|start_header_id|> <|end_header_id|>"
    " <|eot_id|> <start_of_turn> <end_of_turn> <|system|> <|user|> <|assistant|> <|end|>"
    " <｜User｜> <｜Assistant｜> <｜end▁of▁sentence｜>"
).split()
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HEADER = "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
LLAMA_3 = (
    f"{{{{ bos_token }}}}{{% for m in messages %}}{HEADER}{{{{ m.content | trim }}}}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n"
    "{% endif %}"
)
# The system's message goes into the first question, and questions and answers take turns.
MERGED = (
    "{{ bos_token }}{% set start = messages[0].content + '\n\n' %}{% for m in messages[1:] %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}"
    "{% endif %}{% if m.role == 'user' %}"
)
MISTRAL = (
    MERGED + "[INST]{% if loop.first %}{{ start }}{% endif %}{{ m.content }}[/INST]"
    "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)
BLANK_BEFORE = MISTRAL.replace("{% else %}", "{% else %}{{ ' ' }}")
GEMMA = (
    MERGED + "<start_of_turn>user\n{% if loop.first %}{{ start }}{% endif %}{{ m.content | trim }}"
    "<end_of_turn>\n{% else %}<start_of_turn>model\n{{ m.content | trim }}<end_of_turn>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
# Only the last answer has its thought; without thinking, the prompt ends with an empty thought.
QWEN_3 = (
    "{% for m in messages %}{% set text = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{% set thought = '<think>' in m.content and"
    " m.content.split('</think>')[0].split('<think>')[-1].strip('\n') or '' %}"
    "<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.last %}"
    "{{ '<think>\n' + thought + '\n</think>\n\n' + text }}"
    "{% elif m.role == 'assistant' %}{{ text }}{% else %}{{ m.content }}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
PHI = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
DEEPSEEK = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}"
    "{% elif m.role == 'assistant' %}<｜Assistant｜>{{ m.content.split('</think>')[-1] }}"
    "<｜end▁of▁sentence｜>{% else %}{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}"
)
MARKED_TOO_MUCH = (
    "{%- for m in messages %}\n  {%- if m.role == 'assistant' %}{%- generation %}<|im_start|>"
    "assistant\n{{ m.content }}<|im_end|>\n{%- endgeneration %}{%- else %}<|im_start|>"
    "{{ m.role }}\n{{ m.content }}<|im_end|>{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKED = CHATML.replace(
    "{{ m.content }}<|im_end|>",
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}",
)
# Without a prompt for answers, so that only the marks locate them.
MARKED_IN_PIECES = MARKED.partition("{% if add")[0].replace(
    "<|im_end|>{% endgen", "{% endgeneration %}{% generation %}<|im_end|>{% endgen"
)
FAMILIES = {
    "chatml": (CHATML, "<|im_end|>"),
    "llama 3": (LLAMA_3, "<|eot_id|>"),
    "mistral": (MISTRAL, "</s>"),
    "gemma": (GEMMA, "<end_of_turn>"),
    "qwen 3": (QWEN_3, "<|im_end|>"),
    "phi": (PHI, "<|end|>"),
    "deepseek": (DEEPSEEK, "<｜end▁of▁sentence｜>"),
    "marks itself": (MARKED, "<|im_end|>"),
    "marks itself in pieces": (MARKED_IN_PIECES, "<|im_end|>"),
    "marks too much": (MARKED_TOO_MUCH, "<|im_end|>"),
}
TRIMS = ("llama 3", "gemma")
DROPS_FIRST_LINE_BREAKS = ("qwen 3",)
OBSERVATIONS = (
    "notes.txt",
    " two words \n",
    "\n\nafter empty lines",
    "grün: 日本\n",
    "",
    "notes.txt",
)
CHAT = [
    Message(role="system", content="You simulate."),
    *(message for text in OBSERVATIONS for message in exchange("ls", text)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of a tokenizer with tokens of line breaks only, as in Qwen's."""
    from transformers import PreTrainedTokenizerFast

    from make.tiny_qwen3 import byte_level

    tokenizer = byte_level(["\n\n\nafter", "\n\nafter", "notes.txt"] * 9, 400, SPECIAL)
    fast_tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    fast_tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[3:]})
    folder = tmp_path_factory.mktemp("tokenizer")
    fast_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def marked(folder):
    """Makes the tokenizer of a training from a template."""
    from transformers import AutoTokenizer

    from agentworld.train.answer_marks import mark_answers

    def marked(template):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.chat_template = template
        mark_answers(tokenizer, folder)
        return tokenizer

    return marked


def trained_texts(tokenizer, messages, targets):
    """The trained text of each target."""
    from agentworld.train.encode import Conversation, encode

    texts = []
    for target in targets:
        rows = list(encode(tokenizer, [Conversation(messages, (target,))]))
        texts += [tokenizer.decode(row.input_ids[row.is_target]) for row in rows]
    return texts


def expected_text(family, text):
    if family in TRIMS:
        return text.strip()
    return text.lstrip("\n") if family in DROPS_FIRST_LINE_BREAKS else text


@pytest.mark.parametrize("family", FAMILIES)
def test_a_target_is_the_observation_and_its_end_token(marked, family):
    template, end = FAMILIES[family]
    texts = trained_texts(marked(template), CHAT, range(len(OBSERVATIONS)))
    assert texts == [expected_text(family, text) + end for text in OBSERVATIONS]


@pytest.mark.parametrize("family", FAMILIES)
def test_all_targets_of_an_episode_are_trained_once(marked, family):
    from agentworld.train.encode import Conversation, encode

    template, end = FAMILIES[family]
    tokenizer = marked(template)
    rows = list(encode(tokenizer, [Conversation(CHAT, tuple(range(len(OBSERVATIONS))))]))
    text = "".join(tokenizer.decode(row.input_ids[row.is_target]) for row in rows)
    assert text == "".join(expected_text(family, text) + end for text in OBSERVATIONS)


@pytest.mark.parametrize("family", ["chatml", "qwen 3"])
def test_a_thought_is_trained_with_its_answer(marked, family):
    template, end = FAMILIES[family]
    messages = [*CHAT[:3], *exchange("cat", with_thought("it has a line", "one line"))]
    (text,) = trained_texts(marked(template), messages, [1])
    assert text.startswith("<think>")
    assert "it has a line" in text
    assert parse_observation(text.removesuffix(end)) == "one line"


def test_targets_of_the_qwen_3_template_start_after_its_empty_thought(marked):
    from trl.chat_template_utils import qwen3_chat_template

    tokenizer = marked(qwen3_chat_template)
    texts = trained_texts(tokenizer, CHAT, range(len(OBSERVATIONS)))
    assert texts == [text.lstrip("\n") + "<|im_end|>" for text in OBSERVATIONS]
    prompt = tokenizer.apply_chat_template(
        CHAT[:2], tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert prompt.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_generation_marks_that_cover_too_much_are_removed_from_the_template(marked):
    tokenizer = marked(MARKED_TOO_MUCH)
    assert "generation %}" not in tokenizer.chat_template
    assert tokenizer.apply_chat_template(CHAT, tokenize=False).count("<|im_end|>") == len(CHAT)


@pytest.mark.parametrize("template", [CHATML, MARKED], ids=["unmarked", "marked"])
def test_an_inseparable_token_across_the_start_of_an_answer_is_no_target(marked, template):
    from tokenizers.normalizers import Lowercase

    tokenizer = marked(template)
    tokenizer.backend_tokenizer.normalizer = Lowercase()  # so that the pieces differ from the text
    messages = [*CHAT[:1], *exchange("ls", "\n\nafter IT")]
    assert trained_texts(tokenizer, messages, [0]) == ["\nafter it<|im_end|>"]


PLAIN = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
REFUSED_TEMPLATES = {
    "no distinction": (PLAIN, "like the user's, so that no model could tell them apart"),
    "a blank before": (BLANK_BEFORE, "elsewhere than right after its prompt"),
    "no prompt": (CHATML.partition("{% if add")[0], "elsewhere than right after its prompt"),
    "no system": ("{{ raise_exception('no system') }}", r"\(no system\)"),
}


@pytest.mark.parametrize(("template", "words"), REFUSED_TEMPLATES.values(), ids=REFUSED_TEMPLATES)
def test_a_template_whose_answers_cannot_be_located_is_refused_in_one_sentence(
    marked, template, words
):
    with pytest.raises(InputError, match=words) as error:
        marked(template)
    assert "\n" not in str(error.value)
