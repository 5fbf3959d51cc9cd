import pytest

from agentworld.domains.shell.copy_warmup import copy_warmup
from agentworld.domains.shell.pretokenizer import pretokenizer_pattern
from agentworld.domains.words import held_out_words

_ENOUGH_FOR_THE_HALVES = 580


@pytest.mark.compute
def test_a_word_that_was_never_seen_is_two_tokens_that_were_with_its_space_and_without() -> None:
    from agentworld.train.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(
        copy_warmup(2_000, seed=0), pretokenizer_pattern(), _ENOUGH_FOR_THE_HALVES
    )
    for word in held_out_words():
        for text in (word, f" {word}"):
            first, second = tokenizer.encode(text)
            assert tokenizer.decode([first]) + tokenizer.decode([second]) == text
        assert tokenizer.encode(f"{word}.txt")[:2] == tokenizer.encode(word)
