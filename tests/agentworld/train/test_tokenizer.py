import pytest

from agentworld.domains.shell.copy_warmup import copy_warmup
from agentworld.domains.shell.pretokenizer import pretokenizer_pattern
from agentworld.domains.words import held_out_words

_ENOUGH_FOR_THE_HALVES = 580


@pytest.mark.compute
def test_a_held_out_word_is_two_tokens_with_and_without_a_leading_space() -> None:
    from agentworld.train.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(
        copy_warmup(2_000, seed=0), pretokenizer_pattern(), _ENOUGH_FOR_THE_HALVES
    )
    for word in held_out_words():
        for text in (word, f" {word}"):
            first, second = tokenizer.encode(text)
            assert tokenizer.decode([first]) + tokenizer.decode([second]) == text
        assert tokenizer.encode(f"{word}.txt")[:2] == tokenizer.encode(word)
