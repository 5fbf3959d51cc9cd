import os

import pytest

from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIGNER, ensure_signer, new_signer, public_pem
from agentworld.statements.mounted_keys import MountedKeys, read_trusted_keys
from make.ledger import laid


@pytest.fixture
def ledger_keys(tmp_path):
    return Ledger(laid(f"sqlite:///{tmp_path / 'ledger.db'}")).signing_keys


@pytest.fixture
def folder(tmp_path):
    """A folder with only a signer, like a mounted Secret."""
    path = tmp_path / "keys"
    path.mkdir()
    write_signer(path, new_signer())
    return path


def write_signer(folder, pem):
    with open(os.open(folder / SIGNER, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)


def test_loading_the_signer_records_its_public_key_in_the_ledger(folder, ledger_keys):
    signer = MountedKeys(folder, ledger_keys).signer()
    assert read_trusted_keys(ledger_keys) == {signer.public_key.keyid: signer.public_key}


def test_nothing_is_written_beside_the_signer(folder, ledger_keys):
    MountedKeys(folder, ledger_keys).signer()
    assert [path.name for path in folder.iterdir()] == [SIGNER]


def test_replicas_record_the_same_key_once(folder, ledger_keys):
    for _ in range(2):
        MountedKeys(folder, ledger_keys).signer()
    assert len(ledger_keys.all()) == 1


def test_a_new_signer_is_used_and_the_old_key_stays_trusted(folder, ledger_keys):
    keys = MountedKeys(folder, ledger_keys)
    old = keys.signer()
    write_signer(folder, new_signer())
    new = keys.signer()
    assert [*read_trusted_keys(ledger_keys)] == [old.public_key.keyid, new.public_key.keyid]


def test_a_folder_without_a_signer_is_refused(tmp_path, ledger_keys):
    with pytest.raises(NotFound, match="there is no signer"):
        MountedKeys(tmp_path, ledger_keys).signer()


def test_a_key_changed_in_the_ledger_is_not_trusted(folder, ledger_keys, tmp_path):
    key = MountedKeys(folder, ledger_keys).signer().public_key
    other_key = ensure_signer(tmp_path / "other").public_key
    ledger_keys.use("0" * 64, public_pem(other_key).decode())
    ledger_keys.use("1" * 64, "\ud7ff no PEM")
    assert read_trusted_keys(ledger_keys) == {key.keyid: key}
