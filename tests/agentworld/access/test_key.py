import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from agentworld.access.key import PREFIX, key_digest, new_key


def test_new_keys_have_the_prefix_and_256_bits_and_are_unique():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch(PREFIX + "[A-Za-z0-9_-]{43}", key) for key in keys)


def test_the_digest_of_a_key_is_its_sha256():
    key = new_key()
    assert key_digest(key) == hashlib.sha256(key.encode()).hexdigest()


@given(st.text(st.characters()))
def test_any_text_sent_as_a_key_has_a_digest(text):
    assert re.fullmatch("[0-9a-f]{64}", key_digest(text))
