import os

import pytest

from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.signing.keys import SIGNER, ensure_signer, new_signer, public_pem
from agentworld.statements.mounted_keys import MountedKeys, read_trusted_keys
from make.ledger import laid


@pytest.fixture
def told(tmp_path):
    return Ledger(laid(f"sqlite:///{tmp_path / 'ledger.db'}")).signing_keys


@pytest.fixture
def folder(tmp_path):
    """With only a signer, as a Secret is mounted."""
    made = tmp_path / "keys"
    made.mkdir()
    put(made, new_signer())
    return made


def put(folder, pem):
    with open(os.open(folder / SIGNER, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)


def test_loading_the_signer_records_its_public_key_in_the_ledger(folder, told):
    signer = MountedKeys(folder, told).signer()
    assert read_trusted_keys(told) == {signer.public_key.keyid: signer.public_key}


def test_nothing_is_written_beside_the_signer(folder, told):
    MountedKeys(folder, told).signer()
    assert [path.name for path in folder.iterdir()] == [SIGNER]


def test_replicas_record_the_same_key_once(folder, told):
    for _ in range(2):
        MountedKeys(folder, told).signer()
    assert len(told.all()) == 1


def test_a_new_signer_is_used_and_the_old_key_stays_trusted(folder, told):
    keys = MountedKeys(folder, told)
    old = keys.signer()
    put(folder, new_signer())
    new = keys.signer()
    assert [*read_trusted_keys(told)] == [old.public_key.keyid, new.public_key.keyid]


def test_a_folder_without_a_signer_is_refused(tmp_path, told):
    with pytest.raises(NotFound, match="there is no signer"):
        MountedKeys(tmp_path, told).signer()


def test_a_key_changed_in_the_ledger_is_not_trusted(folder, told, tmp_path):
    own = MountedKeys(folder, told).signer().public_key
    other = ensure_signer(tmp_path / "other").public_key
    told.use("0" * 64, public_pem(other).decode())
    told.use("1" * 64, "\ud7ff no PEM")
    assert read_trusted_keys(told) == {own.keyid: own}
