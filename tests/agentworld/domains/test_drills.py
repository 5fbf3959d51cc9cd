import re

from agentworld.domains.terminal.drills import drills
from agentworld.domains.terminal.words import held_out_words

TEXTS = list(drills(200, seed=0))
WRITE = re.compile(r"echo (?P<text>.+) > (?P<name>\w+\.txt)|(?P<given>\w+\.txt): (?P<held>.+)")


def test_a_file_that_is_read_holds_what_was_written_into_it_last() -> None:
    num_read = 0
    for text in TEXTS[1::2]:
        held: dict[str, str] = {}
        lines = iter(text.split("\n"))
        for line in lines:
            if written := WRITE.fullmatch(line):
                held[written["name"] or written["given"]] = written["text"] or written["held"]
            else:
                assert next(lines) == held[line.removeprefix("cat ")]
                num_read += 1
    assert num_read > len(TEXTS) // 2


def test_no_drill_tells_a_held_out_word() -> None:
    told = {word for text in TEXTS for word in re.findall(r"[a-z]{6}", text)}
    assert told
    assert not told & set(held_out_words())


def test_the_same_seed_gives_the_same_drills() -> None:
    assert list(drills(10, seed=3)) == list(drills(10, seed=3)) != list(drills(10, seed=4))
