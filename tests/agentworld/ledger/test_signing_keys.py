import pytest

from agentworld.ledger import Ledger


@pytest.fixture
def keys(tmp_path):
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").signing_keys


def test_a_ledger_that_nobody_signs_tells_of_no_key(keys):
    assert keys.all() == []


def test_the_key_that_signs_has_no_end(keys):
    keys.use("one", "its PEM")
    (told,) = keys.all()
    assert (told.key, told.public, told.until) == ("one", "its PEM", None)


def test_a_key_that_is_used_again_is_told_once(keys):
    for _ in range(3):
        keys.use("one", "its PEM")
    assert len(keys.all()) == 1


def test_a_key_ends_when_another_takes_its_place(keys):
    keys.use("one", "its PEM")
    keys.use("two", "another")
    first, second = keys.all()
    assert (first.key, first.until) == ("one", second.since)
    assert (second.key, second.until) == ("two", None)


def test_a_key_that_comes_back_has_two_times(keys):
    for key in ("one", "two", "one"):
        keys.use(key, "its PEM")
    assert [told.key for told in keys.all()] == ["one", "two", "one"]
