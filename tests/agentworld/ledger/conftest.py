"""Every test of a ledger runs on both databases: the one of a laptop and the one of replicas."""

import pytest

from agentworld.ledger import Ledger
from make.ledger import laid


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.waits)])
def url(request, tmp_path):
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def ledger(url):
    """A ledger without an object store."""
    ledger = Ledger(laid(url))
    yield ledger
    ledger.close()
