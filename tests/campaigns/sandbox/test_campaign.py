"""A short version of the campaign that `make sandbox-attempts` runs, and tests of its judge."""

from collections import Counter

import pytest

from agentworld.domains.shell.session import LiveShell
from agentworld.domains.terminal.process import _SHELL
from campaigns.harness.schedule import shuffled
from campaigns.sandbox import terminal
from campaigns.sandbox.attempt import TOKEN, attempts_of
from campaigns.sandbox.campaign import all_attempts, try_all
from campaigns.sandbox.host import Host

pytestmark = pytest.mark.waits

_OF_EACH_KIND = 4
ALLOW_ALL = bytes.fromhex("06000000 0000ff7f")


@pytest.fixture
def host(tmp_path):
    with Host(tmp_path) as host:
        yield host


def sample(host):
    """A few attempts of each kind."""
    counts, attempts = Counter(), all_attempts(host)
    for attempt, _ in zip(shuffled(dict.fromkeys(attempts, 1), "short"), attempts, strict=False):
        counts[attempt.kind] += 1
        if counts[attempt.kind] <= _OF_EACH_KIND:
            yield attempt


def test_no_attempt_escapes_a_sandbox_or_leaves_traces(host):
    report = try_all([*sample(host)], host, "short")
    assert report.sentences == []
    assert {*report.by_kind.values()} == {_OF_EACH_KIND}
    assert (report.escapes, report.leaks) == (0, 0)


def test_there_are_more_than_200_distinct_attempts(host):
    attempts = all_attempts(host)
    assert len({*attempts}) == len(attempts) > 200


def test_escapes_from_a_sandbox_without_its_filter_are_found(host, monkeypatch):
    monkeypatch.setattr("agentworld.domains.sandbox.filter_of", lambda **_: ALLOW_ALL)
    open_calls = [
        attempt for attempt in all_attempts(host) if attempt.name in {"shmget", "keyctl", "socket"}
    ]
    report = try_all(open_calls, host, "open")
    assert (report.escapes, report.attempts) == (3, 3)


def test_an_escape_of_a_shell_with_the_first_processs_capability_is_found(host, monkeypatch):
    name = "agentworld.domains.terminal.process._SHELL"
    monkeypatch.setattr(name, _SHELL[_SHELL.index("setsid") :])
    environ_attempts = [
        attempt for attempt in terminal.attempts("") if "/proc/1/environ" in attempt.name
    ]
    report = try_all(environ_attempts, host, "capable")
    assert (report.attempts, report.escapes) == (1, 1)


class LastingShell(LiveShell):
    """A shell with one sandbox for all episodes, as without any cleanup."""

    def reset(self, files=None):
        if self._sandbox is None:
            super().reset(files)

    def close(self):
        pass

    def end(self):
        super().close()


def test_leaks_from_one_episode_to_the_next_are_found(host, monkeypatch):
    monkeypatch.setattr("campaigns.sandbox.host.END_SECONDS", 1.0)  # for processes that never end
    shells = []

    def open_shell():
        shells.append(LastingShell(seconds=10))
        return shells[-1]

    leaking_attempts = attempts_of("state", f"echo {TOKEN} >/home/{TOKEN}", "umask 777")
    try:
        report = try_all(leaking_attempts, host, "left", open_shell)
    finally:
        shells[0].end()
    assert report.leaks == 2
    for text in ("processes that are left", f"/home/{TOKEN}", "umask"):
        assert any(text in sentence for sentence in report.sentences), text
