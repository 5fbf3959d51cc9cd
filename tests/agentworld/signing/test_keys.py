import hashlib
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.signing.envelope import sign, verify
from agentworld.signing.keys import (
    SIGNER,
    TRUSTED,
    current_key,
    ensure_signer,
    load_signer,
    load_trusted,
    rotate,
)
from make import records
from waiting import DEADLINE


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def test_a_signer_is_created_once_and_accessible_only_to_its_owner(tmp_path):
    folder = tmp_path / "keys"
    signer = ensure_signer(folder)
    assert (mode_of(folder), mode_of(folder / SIGNER)) == (0o700, 0o600)
    data = (folder / SIGNER).read_bytes()
    assert ensure_signer(folder).public_key == load_signer(folder).public_key == signer.public_key
    assert (folder / SIGNER).read_bytes() == data


def test_a_key_id_is_the_sha256_of_the_public_key(tmp_path):
    signer = ensure_signer(tmp_path)
    public_key = load_pem_private_key((tmp_path / SIGNER).read_bytes(), None).public_key()
    der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert signer.public_key.keyid == hashlib.sha256(der).hexdigest()


def test_load_signer_does_not_create_a_missing_signer(tmp_path):
    with pytest.raises(NotFound, match=r"there is no signer .*signer\.pem"):
        load_signer(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("turn", range(10))
def test_concurrent_creators_of_a_signer_get_the_same_key(tmp_path, turn):
    folder, start = tmp_path / str(turn), threading.Barrier(8, timeout=DEADLINE)

    def make_one(_: int) -> str:
        start.wait()
        return ensure_signer(folder).public_key.keyid

    with ThreadPoolExecutor(8) as pool:
        (key_id,) = set(pool.map(make_one, range(8)))
    assert list(load_trusted(folder)) == [key_id]
    assert sorted(path.name for path in folder.iterdir()) == [SIGNER, TRUSTED]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_signer_accessible_to_other_users_is_refused(tmp_path, mode):
    ensure_signer(tmp_path)
    (tmp_path / SIGNER).chmod(mode)
    with pytest.raises(InputError, match=rf"is accessible to other users \(mode {mode:04o}\)"):
        ensure_signer(tmp_path)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is not a private key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "is not an Ed25519 key"),
        (pem(Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")), "is not a private key"),
    ],
    ids=["empty", "another kind", "encrypted"],
)
def test_an_invalid_signer_file_is_refused(tmp_path, data, problem):
    ensure_signer(tmp_path)
    (tmp_path / SIGNER).write_bytes(data)
    with pytest.raises(InputError, match=problem):
        load_signer(tmp_path)


def test_after_a_rotation_old_and_new_records_verify(tmp_path):
    old = sign(records.statement(by="old"), ensure_signer(tmp_path))
    new = sign(records.statement(by="new"), rotate(tmp_path))
    trusted = load_trusted(tmp_path)
    assert len(trusted) == 2
    assert verify(old, trusted) == records.statement(by="old")
    assert verify(new, trusted) == records.statement(by="new")


def test_a_rotation_leaves_one_new_signer_accessible_only_to_its_owner(tmp_path):
    first = ensure_signer(tmp_path)
    second = rotate(tmp_path)
    assert second.public_key.keyid != first.public_key.keyid
    assert load_signer(tmp_path).public_key == second.public_key
    assert mode_of(tmp_path / SIGNER) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [SIGNER, TRUSTED]


def test_a_rotation_replaces_an_invalid_signer(tmp_path):
    ensure_signer(tmp_path)
    (tmp_path / SIGNER).write_text("no key")
    with pytest.raises(InputError, match="restore or rotate it"):
        load_signer(tmp_path)
    rotate(tmp_path)
    assert load_signer(tmp_path).public_key.keyid in load_trusted(tmp_path)
    assert len(load_trusted(tmp_path)) == 2


def test_rotating_a_missing_signer_is_refused(tmp_path):
    with pytest.raises(NotFound, match="there is no signer"):
        rotate(tmp_path)


def test_a_signer_added_as_a_file_is_trusted_after_loading(tmp_path):
    (tmp_path / SIGNER).write_bytes(pem(Ed25519PrivateKey.generate()))
    (tmp_path / SIGNER).chmod(0o600)
    signer = load_signer(tmp_path)
    assert list(load_trusted(tmp_path)) == [signer.public_key.keyid]


def test_records_verify_with_only_the_public_keys(tmp_path):
    record = sign(records.statement(), ensure_signer(tmp_path))
    (tmp_path / SIGNER).unlink()
    assert verify(record, load_trusted(tmp_path)) == records.statement()


def test_a_key_removed_from_the_trusted_keys_verifies_nothing(tmp_path):
    signer = ensure_signer(tmp_path)
    record = sign(records.statement(), signer)
    rotate(tmp_path)
    (tmp_path / TRUSTED / f"{signer.public_key.keyid}.pem").unlink()
    with pytest.raises(EvidenceError, match="is not trusted"):
        verify(record, load_trusted(tmp_path))


def test_a_public_key_under_the_wrong_name_is_refused(tmp_path):
    signer = ensure_signer(tmp_path)
    path = tmp_path / TRUSTED / f"{signer.public_key.keyid}.pem"
    path.rename(path.with_stem("0" * 64))
    with pytest.raises(InputError, match="is not the Ed25519 key of its name"):
        load_trusted(tmp_path)


def test_an_invalid_public_key_is_refused(tmp_path):
    ensure_signer(tmp_path)
    (tmp_path / TRUSTED / "a.pem").write_bytes(b"no key")
    with pytest.raises(InputError, match=r"a\.pem is not a public key"):
        load_trusted(tmp_path)


def test_current_key_returns_the_key_id_without_trusting_the_key(tmp_path):
    assert current_key(tmp_path) is None
    signer = ensure_signer(tmp_path)
    (tmp_path / TRUSTED / f"{signer.public_key.keyid}.pem").unlink()
    assert current_key(tmp_path) == signer.public_key.keyid
    assert list((tmp_path / TRUSTED).iterdir()) == []


def test_a_folder_without_public_keys_is_refused(tmp_path):
    with pytest.raises(NotFound, match="holds no public key"):
        load_trusted(tmp_path)
