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
    rng, table, keys = random.Random(0), Contents(), set()
    edge_keys = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    for key in [
        *edge_keys,
        *(rng.choice([rng.getrandbits(64), rng.getrandbits(9)]) for _ in range(5_000)),
    ]:
        assert table.add_key(key) == (key not in keys)
        keys.add(key)
    assert len(keys) - 64 < table.num_bytes / 8 <= len(keys)
    assert not any(table.add_key(key) for key in keys)


def test_a_copy_has_the_same_domain_start_and_turns_from_any_source():
    table = Contents()
    episode = records.trajectory()
    assert table.add(episode)
    assert not table.add(episode.model_copy(update={"source": "another", "seed": 9}))
    assert table.add(episode.model_copy(update={"initial_state": "another"}))
    assert table.add(episode.model_copy(update={"domain": "text"}))
    assert table.add(episode.model_copy(update={"turns": episode.turns[:1]}))


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1)))
def test_copies_in_an_array_are_those_found_by_adding_keys_one_by_one(keys):
    table = Contents()
    copies = [not table.add_key(key) for key in keys]
    assert are_copies(np.array(keys, np.uint64)).tolist() == copies


def test_the_boundary_between_action_and_observation_distinguishes_contents():
    table = Contents()
    pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]
    for action, observation in pairs:
        turns = (Turn(action=action, observation=observation),)
        assert table.add(records.trajectory().model_copy(update={"turns": turns}))
