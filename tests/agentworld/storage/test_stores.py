import pytest

from agentworld.storage.stores import Stores

ADDRESSES = {
    "ledger_url": "postgresql://ada:secret@host/ledger",
    "objects_url": "s3://bucket/objects",
    "mirror_url": "gs://other/checkpoints",
    "keys": "/run/keys",
}


def addresses(folder) -> dict[str, str]:
    return {name: str(value) for name, value in Stores.of(folder)}


@pytest.mark.parametrize("name", ADDRESSES)
def test_each_environment_variable_overrides_only_its_own_address(tmp_path, monkeypatch, name):
    defaults = addresses(tmp_path)
    assert all(str(tmp_path) in address for address in defaults.values())
    monkeypatch.setenv(f"AGENTWORLD_{name.upper()}", ADDRESSES[name])
    assert addresses(tmp_path) == {**defaults, name: ADDRESSES[name]}
    monkeypatch.setenv(f"AGENTWORLD_{name.upper()}", "")
    assert addresses(tmp_path) == defaults
