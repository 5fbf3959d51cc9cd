import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data import contents
from agentworld.data.contents import Contents, are_copies
from agentworld.records.trajectory import Turn
from make import records


def test_it_says_of_each_key_what_a_set_says_and_takes_8_bytes_for_one(monkeypatch):
    monkeypatch.setattr(contents, "_MOST_RECENT", 64)
    rng, mine, theirs = random.Random(0), Contents(), set()
    edges = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    for key in [
        *edges,
        *(rng.choice([rng.getrandbits(64), rng.getrandbits(9)]) for _ in range(5_000)),
    ]:
        assert mine.add_key(key) == (key not in theirs)
        theirs.add(key)
    assert len(theirs) - 64 < mine.num_bytes / 8 <= len(theirs)
    assert not any(mine.add_key(key) for key in theirs)


def test_a_copy_has_the_same_turns_whoever_wrote_it_down():
    mine = Contents()
    episode = records.trajectory()
    assert mine.add(episode)
    assert not mine.add(episode.model_copy(update={"source": "another", "seed": 9}))
    assert mine.add(episode.model_copy(update={"initial_state": "another"}))
    assert mine.add(episode.model_copy(update={"domain": "text"}))
    assert mine.add(episode.model_copy(update={"turns": episode.turns[:1]}))


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1)))
def test_of_many_at_once_the_same_are_copies_as_of_one_after_another(keys):
    contents = Contents()
    copies = [not contents.add_key(key) for key in keys]
    assert are_copies(np.array(keys, np.uint64)).tolist() == copies


def test_texts_do_not_run_together():
    mine = Contents()
    pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]
    for action, observation in pairs:
        turns = (Turn(action=action, observation=observation),)
        assert mine.add(records.trajectory().model_copy(update={"turns": turns}))
