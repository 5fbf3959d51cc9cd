"""Forbids live environments while an agent trains in a simulator, as proof that it used none.

`domains.live` calls `check` before it opens an environment. Python's audit hook also reports every
program that this process starts; programs that run commands, browse or serve tools are refused.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

_PROGRAMS = frozenset(
    "bwrap unshare nsenter chroot docker podman runc crun kubectl qemu-system-x86_64 ssh"
    " sh bash dash zsh ksh fish busybox tmux screen script"
    " chromium chromium-browser headless_shell chrome google-chrome firefox chromedriver"
    " geckodriver adb emulator"
    " env sudo timeout node npm npx deno bun uv uvx pipx".split()
)
_WRAPPERS = frozenset("setpriv prlimit setsid nice ionice taskset numactl stdbuf nohup".split())
"""Programs that start the program named in the rest of their command line."""
_OWN_MODULES = ("agentworld", "torch", "vllm", "multiprocessing")
_EVENTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system")


class LiveEnvironmentRefused(RuntimeError):
    """A training that may only see a simulator tried to open a live environment."""


class Guard:
    """Refuses every attempt to open an environment, and counts the attempts."""

    def __init__(self, programs: frozenset[str]) -> None:
        self.num_refused = 0
        self.programs = programs

    def refuse(self, attempt: str) -> NoReturn:
        """Counts an attempt and raises LiveEnvironmentRefused."""
        self.num_refused += 1
        raise LiveEnvironmentRefused(
            f"a simulated training may not start {attempt}; it has the simulator alone"
        )


_guards: list[Guard] = []


def check() -> None:
    """Raises LiveEnvironmentRefused while a simulated training runs in this process."""
    if _guards:
        _guards[-1].refuse("a live environment")


@contextmanager
def refuse_environments(launchers: frozenset[str]) -> Iterator[Guard]:
    """Forbids this process environments and the programs `launchers` while the block runs."""
    _add_hook()
    guard = Guard(_PROGRAMS | launchers)
    _guards.append(guard)
    try:
        yield guard
    finally:
        _guards.remove(guard)


def _on_audit_event(event: str, arguments: tuple[object, ...]) -> None:
    if _guards and event in _EVENTS and (program := _refusal_of(event, arguments)):
        _guards[-1].refuse(program)


_hooks: list[str] = []


def _add_hook() -> None:
    """Adds the hook once for each process, because a hook cannot be removed."""
    if not _hooks:
        sys.addaudithook(_on_audit_event)
        _hooks.append("added")


def _refusal_of(event: str, arguments: tuple[object, ...]) -> str | None:
    """The name of a program that may not be started; null for an allowed program."""
    if event == "os.system":
        return "a shell"
    program, command = arguments[1:3] if event == "os.spawn" else arguments[:2]
    parts = [_text(argument) for argument in command] if isinstance(command, list | tuple) else []
    return _refused_command([_text(program or parts[0]), *parts[1:]])


def _refused_command(parts: list[str]) -> str | None:
    name = os.path.basename(parts[0])
    if name in _WRAPPERS:
        starts = (number for number, part in enumerate(parts) if number and shutil.which(part))
        first = next(starts, None)
        return _refused_command(parts[first:]) if first else None
    if name.startswith("python") and not _is_own(parts[1:]):
        return " ".join([name, *parts[1:3]])
    # Servers of tools are often separate programs with a name such as mcp-server-git.
    return name if name in _guards[-1].programs or name.startswith("mcp") else None


def _is_own(arguments: list[str]) -> bool:
    """Whether Python runs a module of `_OWN_MODULES`, or code of torch or multiprocessing."""
    rest = [
        argument
        for argument in arguments
        if not argument.startswith("-") or argument in {"-m", "-c"}
    ]
    match rest:
        case ["-m", module, *_]:
            return module.partition(".")[0] in _OWN_MODULES
        case ["-c", code, *_]:
            return "multiprocessing" in code or "torch" in code
        case [script, *_]:
            path = Path(script)
            return path.is_relative_to(sys.prefix) and not set(path.parts).isdisjoint(_OWN_MODULES)
    return False


def _text(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else str(value)
