import pytest

from agentworld.storage.stores import Stores

NAMED = {
    "ledger_url": "postgresql://ada:secret@host/ledger",
    "objects_url": "s3://bucket/objects",
    "mirror_url": "gs://other/checkpoints",
    "keys": "/run/keys",
}


def addresses(folder) -> dict[str, str]:
    return {name: str(value) for name, value in Stores.of(folder)}


@pytest.mark.parametrize("name", NAMED)
def test_each_environment_variable_overrides_only_its_own_address(tmp_path, monkeypatch, name):
    files = addresses(tmp_path)
    assert all(str(tmp_path) in address for address in files.values())
    monkeypatch.setenv(f"AGENTWORLD_{name.upper()}", NAMED[name])
    assert addresses(tmp_path) == {**files, name: NAMED[name]}
    monkeypatch.setenv(f"AGENTWORLD_{name.upper()}", "")
    assert addresses(tmp_path) == files
