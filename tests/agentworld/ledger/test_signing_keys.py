import pytest

from agentworld.ledger import Ledger


@pytest.fixture
def keys(tmp_path):
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").signing_keys


def test_a_new_ledger_has_no_signing_keys(keys):
    assert keys.all() == []


def test_the_current_signing_key_has_no_end_time(keys):
    keys.use("one", "its PEM")
    (signing_key,) = keys.all()
    assert (signing_key.key, signing_key.public, signing_key.until) == ("one", "its PEM", None)


def test_a_key_that_is_used_repeatedly_is_listed_once(keys):
    for _ in range(3):
        keys.use("one", "its PEM")
    assert len(keys.all()) == 1


def test_a_keys_end_time_is_the_start_time_of_the_next_key(keys):
    keys.use("one", "its PEM")
    keys.use("two", "another")
    first, second = keys.all()
    assert (first.key, first.until) == ("one", second.since)
    assert (second.key, second.until) == ("two", None)


def test_a_key_used_again_after_another_key_is_listed_twice(keys):
    for key in ("one", "two", "one"):
        keys.use(key, "its PEM")
    assert [signing_key.key for signing_key in keys.all()] == ["one", "two", "one"]
