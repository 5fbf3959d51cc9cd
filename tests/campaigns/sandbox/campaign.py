"""Hundreds of attempts to escape from the sandbox, or to leave traces in it or after it.

They run in the episodes of one live shell, or of one live terminal. After each of them, the machine
must be unchanged, and a new episode's output must equal the first one's, byte for byte.
"""

import itertools
import time
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

import psutil

from agentworld.domains.shell.session import LiveShell
from agentworld.errors import EnvironmentBroken
from campaigns.harness.finding import Finding
from campaigns.harness.report import MOST_SENTENCES, Report, count
from campaigns.harness.schedule import shuffled
from campaigns.sandbox import calls, commands, terminal, traces
from campaigns.sandbox.attempt import SEEN, TOKEN, EscapeAttempt
from campaigns.sandbox.host import Host, alive, census, family, zombies
from campaigns.sandbox.terminal import LiveTerminal

START = {"rimo.txt": "besa\n"}
_SECONDS = 5.0
_LOOK = """{
ls -A /; ls -AR /home /dev; find /home /dev -printf '%p %m %s %U %n\\n'
df --output=used,iused /home
cat /home/agent/* /home/agent/.*; env; compgen -v; declare -F; alias; trap; set +o; shopt; ulimit -a
umask; jobs; nice; id; pwd; history; hostname; complete; type cat echo ls printf cd; ipcs; ps
for i in {3..63}; do { true <&$i; } && echo $i; done; echo $SHLVL $$ $PPID $! $-
} 2>&1"""
"""Everything that an episode can see, as text."""


class SandboxReport(Report):
    """The results of a campaign."""

    attempts: int = 0
    escapes: int = 0
    """Attempts that reached, saw or changed something of the machine's."""
    leaks: int = 0
    """Attempts that left something on the machine, for a later episode or for a later command."""


def run(folder: Path, num_attempts: int, seed: str) -> SandboxReport:
    """`num_attempts` attempts, each kind equally often."""
    with Host(folder) as host:
        order = shuffled(dict.fromkeys(all_attempts(host), 1), seed)
        return try_all([*itertools.islice(order, num_attempts)], host, seed)


def all_attempts(host: Host) -> list[EscapeAttempt]:
    """All attempts."""
    return [
        *commands.files(str(host.file)),
        *calls.attempts(),
        *commands.network(host.port, host.path),
        *commands.memory(),
        *commands.processes(),
        *traces.state(),
        *traces.prompts(),
        *traces.claims(),
        *terminal.attempts(str(host.file)),
    ]


def try_all(
    attempts: Sequence[EscapeAttempt],
    host: Host,
    seed: str,
    open_shell: Callable[[], LiveShell] = lambda: LiveShell(seconds=_SECONDS),
) -> SandboxReport:
    """Runs the attempts, one after another."""
    start, outside_processes = time.monotonic(), family()
    in_terminal = [attempt for attempt in attempts if attempt.kind == "terminal"]
    in_shell = [attempt for attempt in attempts if attempt not in in_terminal]
    findings = [
        *_try_in(open_shell, in_shell, host, outside_processes),
        *_try_in(LiveTerminal, in_terminal, host, outside_processes),
    ]
    subjects = {
        kind: {finding.subject for finding in findings if finding.kind == kind} for kind in _KINDS
    }
    return SandboxReport(
        seed=seed,
        attempts=len(attempts),
        escapes=len(subjects["escape"]),
        leaks=len(subjects["leak"]),
        by_kind=count(attempt.kind for attempt in attempts),
        sentences=[finding.sentence for finding in findings[:MOST_SENTENCES]],
        seconds=round(time.monotonic() - start, 1),
    )


_KINDS = ("escape", "leak")
_Room = LiveShell | LiveTerminal


def _try_in(
    open_room: Callable[[], _Room],
    attempts: Sequence[EscapeAttempt],
    host: Host,
    outside_processes: Container[psutil.Process],
) -> Iterator[Finding]:
    if not attempts:
        return
    with open_room() as shell:
        shell.reset(START)
        first_view = shell.step(_LOOK)
        for attempt in attempts:
            yield from _judged(attempt, shell, host, first_view, outside_processes)


def _judged(
    attempt: EscapeAttempt,
    shell: _Room,
    host: Host,
    first_view: str,
    outside_processes: Container[psutil.Process],
) -> Iterator[Finding]:
    """The problems after an attempt; `outside_processes` are not in sandboxes."""
    census_before = census()
    shell.reset(START)
    output = _play(shell, attempt.actions)
    is_escape = SEEN in output or host.secret in output or host.was_reached()
    if is_escape:
        yield _finding("escape", attempt, output[-300:])
    problem = _AFTER.get(attempt.kind, _nothing)(shell)
    if problem:
        yield _finding("leak", attempt, problem)
    new_processes = [item for item in family() if item not in outside_processes]
    shell.close()
    for name, remaining in (
        ("processes", alive(new_processes)),
        ("zombies", zombies(outside_processes)),
    ):
        if remaining:
            yield _finding("leak", attempt, f"{name} that are left: {remaining}")
    census_after = census()
    if census_after != census_before:
        changes = [
            pair for pair in zip(census_before, census_after, strict=True) if pair[0] != pair[1]
        ]
        yield _finding("leak", attempt, f"the machine is another one: {changes}")
    shell.reset(START)
    view = shell.step(_LOOK)
    if view != first_view:
        yield _finding("leak", attempt, f"a new episode shows {_other_lines(first_view, view)}")


def _play(shell: _Room, actions: Sequence[str]) -> str:
    """The output until the end, or until the sandbox broke."""
    observations = []
    try:
        for action in actions:
            observations.append(shell.step(action))
    except EnvironmentBroken as error:
        observations.append(str(error))
    return "\n".join(observations)


def _moved(shell: _Room) -> str:
    """Changes in the observations of later commands."""
    try:
        for n in range(3):
            observation = shell.step(f"\\builtin echo kolu {n}")
            if observation.rpartition("\n")[0] != f"kolu {n}":
                return f"a later command shows {observation!r}"
    except EnvironmentBroken:
        pass
    return ""


def _misreported(shell: _Room) -> str:
    try:
        files = shell.files()
    except EnvironmentBroken:  # an attempt that ends its sandbox has failed
        return ""
    is_honest = files.get("rimo.txt") == "besa" and "tane.txt" not in files
    return "" if is_honest else f"the files are told as {files!r}"


def _nothing(_: _Room) -> str:
    return ""


_AFTER: dict[str, Callable[[_Room], str]] = {
    "prompt": _moved,
    "claim": _misreported,
    "terminal": _misreported,
}


def _finding(kind: str, attempt: EscapeAttempt, problem: str) -> Finding:
    return Finding(kind, f"{attempt.kind} {attempt.name!r}: {problem}", attempt.name)


def _other_lines(first_view: str, view: str) -> list[str]:
    lines = {*first_view.splitlines()}
    new_lines = [line for line in view.splitlines() if line not in lines]
    return [line for line in new_lines if TOKEN in line] or new_lines[:5] or ["fewer lines"]
