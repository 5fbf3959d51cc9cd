"""A shell at a pty: types keys, then reads the screen when keys are awaited or time is over."""

import errno
import fcntl
import os
import secrets
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from agentworld.domains.polling import wait_ready
from agentworld.domains.terminal.display import Display
from agentworld.domains.terminal.keys import MOST_SECONDS, Keys
from agentworld.domains.terminal.waiting import awaits_keys
from agentworld.errors import EnvironmentBroken

MOST_OUTPUT = 16 << 20
"""The most output bytes of one action."""
_MOST_RENDERED = 64 << 10
"""The most output bytes of one action that are rendered: the last whole lines."""
_State = Literal["waits", "reads", "runs"]
_POLL_SECONDS = 0.001  # there is no notification of a wait for keys, so it is polled
_LOCAL_FLAGS = 3  # the index in the list that tcgetattr returns


class TerminalProcess(Protocol):
    """A shell at a pty; the session does not depend on how it was started or isolated."""

    @property
    def master(self) -> int:
        """The descriptor of the pty's master."""

    @property
    def line(self) -> int:
        """The pty's slave, opened again without blocking."""

    def is_alive(self) -> bool:
        """Whether the shell runs."""

    def files(self, deadline: float) -> dict[str, str]:
        """The files of its home, read in a way that no command can falsify."""

    def close(self) -> None:
        """Ends the shell and every process that it started."""


class TerminalSession:
    """One episode. After EnvironmentBroken, close it."""

    def __init__(self, process: TerminalProcess, seconds: float) -> None:
        """Waits for the first prompt, at most so many seconds."""
        self._process = process
        self._seconds = seconds
        self._display = Display()
        self._num_bytes = 0
        # Only digits, because a terminal can be set to convert letters.
        self._mark = f"\x1b]777;{secrets.randbelow(10**18):018d}\x07".encode()
        self._unshown = bytearray()  # rendering is slow, and no keys wait for it
        os.set_blocking(process.master, False)
        self._shell = 0
        if not self._settle(seconds):
            raise EnvironmentBroken("the terminal's shell showed no prompt; the episode is over")
        self._shell = os.tcgetpgrp(process.master)

    @property
    def screen(self) -> str:
        """The text of the screen."""
        first = 0
        if len(self._unshown) > _MOST_RENDERED:
            first = self._unshown.find(b"\n", len(self._unshown) - _MOST_RENDERED) + 1
        self._display.feed(bytes(self._unshown[first:]))
        self._unshown.clear()
        return self._display.text

    def type(self, commands: Sequence[Keys]) -> None:
        """Types commands; the next one follows when the one before has ended or its time is over.

        The limit of an action is a minute; after it the remaining keys are typed without a wait.
        """
        self._num_bytes = 0
        deadline = time.monotonic() + MOST_SECONDS
        for command in commands:
            left = max(0.0, deadline - time.monotonic())
            if not self._run(command, min(command.duration, left)):
                self._drain()
            self._check_shell()

    def files(self) -> dict[str, str]:
        """The files of the shell's home by their paths."""
        return self._process.files(time.monotonic() + self._seconds)

    def close(self) -> None:
        """Ends the shell and every process that it started."""
        self._process.close()

    def _run(self, command: Keys, seconds: float) -> bool:
        """Types a command; whether the shell or a program then waits for keys."""
        if not command.text and self._is_waiting() and not self._drain():
            return True
        self._write(command.text)
        return self._settle(seconds)

    def _settle(self, seconds: float) -> bool:
        """Reads until a program waits for keys; false if the time is over first.

        The shell gets more time while it still reads typed keys: no program has started yet.
        """
        deadline = time.monotonic() + seconds
        last = deadline + self._seconds
        has_answered = False
        while (now := time.monotonic()) < deadline or (now < last and self._state() == "reads"):
            if wait_ready(self._process.master, _POLL_SECONDS)[0]:
                has_answered = bool(self._show(self._read())) or has_answered
                continue
            self._check_shell()
            if has_answered and self._is_waiting() and not self._drain() and self._is_waiting():
                return True
        return False

    def _is_waiting(self) -> bool:
        return self._state() == "waits"

    def _state(self) -> _State:
        """The state of the foreground process.

        The shell waits if it reads keys one by one, has read all of them and sleeps; a program
        waits if the kernel says so.
        """
        try:
            group = os.tcgetpgrp(self._process.master)
            flags = termios.tcgetattr(self._process.master)[_LOCAL_FLAGS]
            unread = fcntl.ioctl(self._process.line, termios.FIONREAD, b"\0" * 4)
        except (OSError, termios.error):  # the pty is closed; the next read reports that
            return "runs"
        has_read_all = struct.unpack("i", unread)[0] == 0
        if group > 0 and self._shell not in (0, group):
            awaits = has_read_all and awaits_keys(self._shell, group, self._process.line)
            return "waits" if awaits else "runs"
        if group <= 0 or flags & termios.ICANON:
            return "runs"
        return "waits" if has_read_all and _state_of(group) == "S" else "reads"

    def _drain(self) -> int:
        """Reads all output so far; returns its number of bytes.

        A mark is written after it into the same queue, and is read back.
        """
        try:
            os.write(self._process.line, self._mark)
        except BlockingIOError:  # the output is stopped, as by C-s, so nothing more comes
            return 0
        except OSError as error:
            raise _dead() from error
        buffer = bytearray()
        deadline = time.monotonic() + self._seconds
        searched = 0
        while (position := buffer.find(self._mark, searched)) < 0:
            left = deadline - time.monotonic()
            if left <= 0 or not wait_ready(self._process.master, left)[0]:
                raise EnvironmentBroken("the terminal does not answer; the episode is over")
            searched = max(0, len(buffer) - len(self._mark))
            buffer += self._read()
        del buffer[position : position + len(self._mark)]
        return self._show(buffer)

    def _read(self) -> bytes:
        try:
            output = os.read(self._process.master, 65536)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno == errno.EIO:
                raise _dead() from error
            raise
        self._num_bytes += len(output)
        if self._num_bytes > MOST_OUTPUT:
            raise EnvironmentBroken(
                f"the terminal showed more than {MOST_OUTPUT} bytes for an action; the episode is"
                " over"
            )
        return output

    def _show(self, output: bytes | bytearray) -> int:
        self._unshown += output
        return len(output)

    def _write(self, text: bytes) -> None:
        """Types a text and reads output meanwhile: a program whose output is full may not read."""
        deadline = time.monotonic() + self._seconds
        master = self._process.master
        while text:
            left = max(0.0, deadline - time.monotonic())
            is_readable, is_writable = wait_ready(master, left, writer=master)
            if is_readable:
                self._show(self._read())
            if is_writable:
                try:
                    text = text[os.write(master, text) :]
                except BlockingIOError:
                    is_writable = False
            if not left or not (is_readable or is_writable):
                raise EnvironmentBroken("the terminal takes no more keys; the episode is over")

    def _check_shell(self) -> None:
        is_gone = self._shell and _state_of(self._shell) in "TtZX"
        if is_gone or not self._process.is_alive():
            raise _dead()


def _state_of(process: int) -> str:
    """The kernel's letter for a process's state: S sleeps, T is stopped, X has ended."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return status.rpartition(")")[2].split()[0]


def _dead() -> EnvironmentBroken:
    return EnvironmentBroken("the terminal's shell has ended or was stopped; the episode is over")
