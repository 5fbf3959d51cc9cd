import logging
import os

import pytest

from agentworld.access.directory import Directory
from agentworld.access.key import key_digest
from agentworld.access.reloaded import ReloadedAccess
from agentworld.errors import InputError
from fakes.clock import Clock

WITH_KEY = f"tenants: {{acme: {{keys: {{ci: {{sha256: {key_digest('a')}, roles: [agent]}}}}}}}}\n"
WITHOUT_KEY = "tenants: {acme: {}}\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "access.yaml").write_text(WITH_KEY)
    return tmp_path / "access.yaml"


def has_key(file):
    return key_digest("a") in file.index.by_key


def test_a_key_removed_from_the_file_is_invalid_after_one_second(path):
    clock = Clock()
    file = ReloadedAccess(path, clock)
    assert has_key(file)
    path.write_text(WITHOUT_KEY)
    clock.now += 0.9
    assert has_key(file)
    clock.now += 0.2
    assert not has_key(file)


def test_a_file_that_did_not_change_is_not_read_again(path):
    clock = Clock()
    file = ReloadedAccess(path, clock)
    index = file.index
    for _ in range(3):
        clock.now += 2
        assert file.index is index


def test_a_mounted_secret_is_reloaded_when_its_symlink_changes(tmp_path):
    for name, text in (("old", WITH_KEY), ("new", WITHOUT_KEY)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "access.yaml").write_text(text)
        # A cluster's node also writes files with equal times.
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
    (message,) = caplog.messages
    assert message.endswith("correct it; the last valid version stays in use")
    path.write_text(WITHOUT_KEY)
    clock.now += 2
    assert not has_key(file)


def test_a_file_that_changes_while_it_is_read_is_read_again(path, monkeypatch):
    clock = Clock()
    load = Directory.load

    def load_and_change(file_path):
        directory = load(file_path)
        path.write_text(WITHOUT_KEY)
        return directory

    monkeypatch.setattr(Directory, "load", load_and_change)
    file = ReloadedAccess(path, clock)
    monkeypatch.undo()
    assert has_key(file)
    clock.now += 2
    assert not has_key(file)


def test_a_file_that_cannot_be_read_at_startup_is_rejected(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        ReloadedAccess(tmp_path / "gone.yaml")
