import logging
import os

import pytest

from agentworld.access.directory import Directory
from agentworld.access.key import key_digest
from agentworld.access.reloaded import ReloadedAccess
from agentworld.errors import InputError
from fakes.clock import Clock

ONE = f"tenants: {{acme: {{keys: {{ci: {{sha256: {key_digest('a')}, roles: [agent]}}}}}}}}\n"
NONE = "tenants: {acme: {}}\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "access.yaml").write_text(ONE)
    return tmp_path / "access.yaml"


def has_key(file):
    return key_digest("a") in file.index.by_key


def test_a_key_removed_from_the_file_is_invalid_after_one_second(path):
    clock = Clock()
    file = ReloadedAccess(path, clock)
    assert has_key(file)
    path.write_text(NONE)
    clock.now += 0.9
    assert has_key(file)
    clock.now += 0.2
    assert not has_key(file)


def test_a_file_that_did_not_change_is_not_read_again(path):
    clock = Clock()
    file = ReloadedAccess(path, clock)
    first = file.index
    for _ in range(3):
        clock.now += 2
        assert file.index is first


def test_a_mounted_secret_is_reloaded_when_its_symlink_changes(tmp_path):
    for name, text in (("old", ONE), ("new", NONE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "access.yaml").write_text(text)
        # As the cluster's node writes them: their times say nothing.
        os.utime(tmp_path / name / "access.yaml", (0, 0))
    link = tmp_path / "data"
    link.symlink_to("old")
    clock = Clock()
    file = ReloadedAccess(link / "access.yaml", clock)
    (tmp_path / "next").symlink_to("new")
    (tmp_path / "next").rename(link)
    clock.now += 2
    assert not has_key(file)


@pytest.mark.parametrize("text", ["tenants: [", "tenants: 7", "", None], ids=str)
def test_a_file_that_becomes_invalid_changes_nothing_and_is_logged_once(path, caplog, text):
    clock = Clock()
    file = ReloadedAccess(path, clock)
    path.unlink() if text is None else path.write_text(text)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            clock.now += 2
            assert has_key(file)
    (told,) = caplog.messages
    assert told.endswith("correct it; the last valid version stays in use")
    path.write_text(NONE)
    clock.now += 2
    assert not has_key(file)


def test_a_file_that_changes_while_it_is_read_is_read_again(path, monkeypatch):
    clock = Clock()
    load = Directory.load

    def and_then_changes(from_path):
        found = load(from_path)
        path.write_text(NONE)
        return found

    monkeypatch.setattr(Directory, "load", and_then_changes)
    file = ReloadedAccess(path, clock)
    monkeypatch.undo()
    assert has_key(file)
    clock.now += 2
    assert not has_key(file)


def test_a_file_that_cannot_be_read_at_startup_is_rejected(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        ReloadedAccess(tmp_path / "gone.yaml")
