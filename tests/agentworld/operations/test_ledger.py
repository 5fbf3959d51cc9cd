import pytest

import make.service
from agentworld.errors import NotFound
from agentworld.operations.ledger import (
    existing_ledger,
    has_keys,
    ledger_digest,
    open_evidence,
    open_ledger,
)


def test_existing_ledger_finds_only_a_written_ledger(tmp_path):
    with pytest.raises(NotFound, match="holds no ledger"):
        existing_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []
    run = open_ledger(tmp_path).open_run(make.service.OPENING, make.service.SIMULATOR)
    assert existing_ledger(tmp_path).runs() == [run]


def test_existing_ledger_does_not_create_the_ledger_of_the_environment(tmp_path, monkeypatch):
    database = tmp_path / "elsewhere.db"
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", f"sqlite:///{database}")
    with pytest.raises(NotFound, match=r"holds no elsewhere\.db"):
        existing_ledger(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []
    run = open_ledger(tmp_path / "store").open_run(make.service.OPENING, make.service.SIMULATOR)
    assert existing_ledger(tmp_path / "another").runs() == [run]


def test_opening_the_evidence_of_a_store_requires_its_public_keys(tmp_path):
    assert not has_keys(tmp_path)
    with pytest.raises(NotFound, match="holds no public key"):
        open_evidence(tmp_path)
    make.service.log_signer(tmp_path)
    assert has_keys(tmp_path)
    evidence = open_evidence(tmp_path)
    assert len(evidence.trusted) == len(evidence.step_keys or {}) == 1
    assert evidence.trusted != evidence.step_keys


def test_the_ledger_digest_of_a_service_ignores_the_ledger_url(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_SERVICE_URL", "http://worlds:8000")
    digest = ledger_digest()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ada:one@host/ledger")
    assert ledger_digest() == digest


def test_the_ledger_digest_does_not_depend_on_the_password(monkeypatch):
    store_digest = ledger_digest()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ada:one@host/ledger")
    url_digest = ledger_digest()
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ada:other@host/ledger")
    assert store_digest != url_digest == ledger_digest()
