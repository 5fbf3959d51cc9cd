import re

from agentworld.domains.shell.copy_warmup import copy_warmup
from agentworld.domains.words import held_out_words

WORD = re.compile(r"[a-z]{6}")


def test_a_warm_up_text_repeats_a_few_words() -> None:
    for text in copy_warmup(200, seed=0):
        words = WORD.findall(text)
        assert len(set(words)) <= 6 < len(words)


def test_no_warm_up_text_holds_a_held_out_word() -> None:
    words = {word for text in copy_warmup(200, seed=0) for word in WORD.findall(text)}
    assert words
    assert not words & set(held_out_words())


def test_the_same_seed_gives_the_same_texts() -> None:
    assert list(copy_warmup(10, 3)) == list(copy_warmup(10, 3)) != list(copy_warmup(10, 4))
