"""A world of each database, copied for the tests."""

import pytest

from campaigns.tamper.story import build


@pytest.fixture(scope="session")
def first_world(tmp_path_factory):
    """A world in a file; tests must not write to it."""
    return build(tmp_path_factory.mktemp("tamper") / "world")


@pytest.fixture
def world(first_world, tmp_path):
    """A copy for tampering."""
    with first_world.copied(tmp_path / "world") as copy, copy.named():
        yield copy
