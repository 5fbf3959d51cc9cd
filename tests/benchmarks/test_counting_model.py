"""The model of the benchmark: whatever it is asked, it says one text, and that text reads back."""

import pytest

from agentworld.rendering.parse import parse_observation
from benchmarks.conversation import TURNS, messages
from benchmarks.counting_model import ANSWER, CONTEXT_TOKENS, counting_model

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return counting_model(tmp_path_factory.mktemp("model"), num_layers=1, hidden_size=64)


@pytest.mark.parametrize("turn", [0, 2])
def test_the_counting_model_says_its_answer_and_ends(folder, turn):
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder)
    asked = tokenizer.apply_chat_template(
        messages(0, turn), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    said = model.generate(**asked, do_sample=False, max_new_tokens=2 * len(ANSWER))
    tokens = said[0, asked["input_ids"].shape[1] :].tolist()
    assert tokens == [*tokenizer.encode(ANSWER), tokenizer.eos_token_id]


def test_the_answer_is_an_observation_as_it_stands():
    assert parse_observation(ANSWER) == ANSWER


def test_the_longest_prompt_and_its_answer_fit_into_the_context(folder):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    longest = tokenizer.apply_chat_template(messages(9, TURNS - 1), add_generation_prompt=True)
    assert len(longest["input_ids"]) + 2 * len(ANSWER) <= CONTEXT_TOKENS
