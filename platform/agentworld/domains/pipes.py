"""Exchanges bytes with a process over two pipes, with a deadline and a size limit."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from agentworld.domains.polling import wait_ready
from agentworld.errors import EnvironmentBroken

_MAX_BYTES = 64 << 10


class Pipes(NamedTuple):
    """The descriptors of a process's input and output."""

    stdin_fd: int
    stdout_fd: int

    def exchange(
        self, data: bytes, is_whole: Callable[[bytes], bool], deadline: float, output: bytes = b""
    ) -> bytes:
        """Writes `data` and reads until the output is whole; returns `output` and what was read.

        Reads while it writes, because a process whose output is full may stop reading. Raises
        EnvironmentBroken at the deadline (of time.monotonic), after 64 KiB, and if a pipe ends.
        """
        os.set_blocking(self.stdin_fd, False)
        while data or not is_whole(output):
            seconds = max(0.0, deadline - time.monotonic())
            is_readable, is_writable = wait_ready(
                self.stdout_fd, seconds, writer=self.stdin_fd if data else None
            )
            if not is_readable and not is_writable:
                raise EnvironmentBroken(_message("took too long"))
            if is_writable:
                data = data[self._write(data) :]
            if is_readable:
                piece = os.read(self.stdout_fd, 65536)
                if not piece:
                    raise EnvironmentBroken(_message("left the shell"))
                output += piece
            if len(output) > _MAX_BYTES:
                raise EnvironmentBroken(_message("printed too much"))
        return output

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self.stdin_fd, data)
        except BrokenPipeError as error:
            raise EnvironmentBroken(_message("left the shell")) from error


def _message(problem: str) -> str:
    return f"the sandboxed command {problem}; the episode is over"
