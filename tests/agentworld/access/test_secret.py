import os
import stat
import threading

import pytest

from agentworld.access.secret import ensure_secret
from agentworld.errors import InputError
from waiting import DEADLINE


def test_a_secret_is_created_once_and_readable_only_by_its_owner(tmp_path):
    path = tmp_path / "keys" / "run-tokens"
    secret = ensure_secret(path)
    assert len(secret) == 32
    assert ensure_secret(path) == secret == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_stores_have_different_secrets(tmp_path):
    assert ensure_secret(tmp_path / "a") != ensure_secret(tmp_path / "b")


def test_concurrent_creations_leave_one_secret_and_no_other_file(tmp_path):
    path, secrets = tmp_path / "keys" / "run-tokens", []
    barrier = threading.Barrier(16, timeout=DEADLINE)

    def create():
        barrier.wait()
        secrets.append(ensure_secret(path))

    threads = [threading.Thread(target=create) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 16
    assert set(secrets) == {path.read_bytes()}
    assert [entry.name for entry in path.parent.iterdir()] == ["run-tokens"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o777])
def test_a_secret_that_others_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "run-tokens"
    secret = ensure_secret(path)
    path.chmod(mode)
    with pytest.raises(
        InputError, match=r"is accessible to other users \(mode 0.*set its mode"
    ) as error:
        ensure_secret(path)
    assert secret.hex() not in str(error.value)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_secret_file_of_the_wrong_size_is_rejected(tmp_path, size):
    path = tmp_path / "run-tokens"
    path.write_bytes(b"x" * size)
    path.chmod(0o600)
    with pytest.raises(InputError, match=f"has {size} bytes, a secret has"):
        ensure_secret(path)


def test_a_secret_has_mode_600_even_without_a_umask(tmp_path):
    umask = os.umask(0)
    try:
        ensure_secret(tmp_path / "run-tokens")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "run-tokens").stat().st_mode) == 0o600
