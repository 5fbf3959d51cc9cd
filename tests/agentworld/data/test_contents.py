import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentworld.data import contents
from agentworld.data.contents import Contents, are_copies
from agentworld.records.trajectory import Turn
from make import records


def test_contents_agree_with_a_set_and_use_8_bytes_for_each_key(monkeypatch):
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


def test_a_copy_has_the_same_domain_start_and_turns_from_any_source():
    mine = Contents()
    episode = records.trajectory()
    assert mine.add(episode)
    assert not mine.add(episode.model_copy(update={"source": "another", "seed": 9}))
    assert mine.add(episode.model_copy(update={"initial_state": "another"}))
    assert mine.add(episode.model_copy(update={"domain": "text"}))
    assert mine.add(episode.model_copy(update={"turns": episode.turns[:1]}))


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1)))
def test_copies_in_an_array_are_those_found_by_adding_keys_one_by_one(keys):
    contents = Contents()
    copies = [not contents.add_key(key) for key in keys]
    assert are_copies(np.array(keys, np.uint64)).tolist() == copies


def test_the_boundary_between_action_and_observation_distinguishes_contents():
    mine = Contents()
    pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]
    for action, observation in pairs:
        turns = (Turn(action=action, observation=observation),)
        assert mine.add(records.trajectory().model_copy(update={"turns": turns}))
