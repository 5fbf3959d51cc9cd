"""A world of each database, which the tests have copies of."""

import pytest

from campaigns.tamper.story import build


@pytest.fixture(scope="session")
def first_world(tmp_path_factory):
    """On a file; nobody writes into it."""
    return build(tmp_path_factory.mktemp("tamper") / "world")


@pytest.fixture
def world(first_world, tmp_path):
    """One like it, to be tampered with."""
    with first_world.copied(tmp_path / "world") as copy, copy.named():
        yield copy
