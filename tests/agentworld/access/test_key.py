import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from agentworld.access.key import PREFIX, key_digest, new_key


def test_a_key_says_what_it_is_and_has_256_bits_that_no_other_has():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch(PREFIX + "[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_keys_digest_is_the_one_that_anybody_can_compute():
    key = new_key()
    assert key_digest(key) == hashlib.sha256(key.encode()).hexdigest()


@given(st.text(st.characters()))
def test_whatever_somebody_sends_as_a_key_has_a_digest(text):
    assert re.fullmatch("[0-9a-f]{64}", key_digest(text))
