import re

from agentworld.domains.shell.copy_warmup import drills
from agentworld.domains.shell.words import held_out_words

WORD = re.compile(r"[a-z]{6}")


def test_a_drill_says_a_few_words_over_and_over() -> None:
    for text in drills(200, seed=0):
        words = WORD.findall(text)
        assert len(set(words)) <= 6 < len(words)


def test_no_drill_tells_a_held_out_word() -> None:
    told = {word for text in drills(200, seed=0) for word in WORD.findall(text)}
    assert told
    assert not told & set(held_out_words())


def test_the_same_seed_gives_the_same_drills() -> None:
    assert list(drills(10, seed=3)) == list(drills(10, seed=3)) != list(drills(10, seed=4))
