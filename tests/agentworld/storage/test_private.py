import os
import stat

import pytest

from agentworld.errors import InputError
from agentworld.storage.private import read_private


def write_secret(folder, mode):
    path = folder / "secret"
    path.write_bytes(b"words")
    path.chmod(mode)
    return path


def test_a_file_accessible_only_to_its_owner_is_read(tmp_path):
    assert read_private(write_secret(tmp_path, 0o600)) == b"words"


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o660, 0o644])
def test_a_file_accessible_to_other_users_is_refused(tmp_path, mode):
    with pytest.raises(InputError, match=f"mode {mode:04o}"):
        read_private(write_secret(tmp_path, mode))


@pytest.mark.parametrize(
    ("mode", "group", "is_allowed"),
    [(0o440, 4711, True), (0o440, 4712, False), (0o460, 4711, False), (0o444, 4711, False)],
    ids=["the pod's group", "another group", "the group writes", "everybody"],
)
def test_a_mounted_secret_may_be_readable_by_the_pods_group(
    tmp_path, monkeypatch, mode, group, is_allowed
):
    path = write_secret(tmp_path, 0o600)
    status = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, 0, group, 5, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _: status)
    for name in ("geteuid", "getegid"):
        monkeypatch.setattr(os, name, lambda: 4711)
    monkeypatch.setattr(os, "getgroups", list)
    if is_allowed:
        assert read_private(path) == b"words"
    else:
        with pytest.raises(InputError, match=f"mode {mode:04o}"):
            read_private(path)
