"""Runs the command line of an MCP server in a sandbox."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from agentworld.domains.sandbox import HOME, Sandbox, SandboxAccess, SandboxLimits, open_sandbox
from agentworld.domains.seccomp import Exemption

ANY_LIMITS = SandboxLimits(
    disk_bytes=64 << 20,
    files=8192,
    memory_bytes=64 << 30,  # Node reserves addresses that it never uses
    data_bytes=1 << 30,
    total_memory_bytes=1 << 30,
    processes=64,
    open_files=1024,  # Node loads a server's modules at once
    file_bytes=32 << 20,
)
"""The limits of a server that a recipe names."""
_EXEMPTIONS: frozenset[Exemption] = frozenset({"locks", "socketpair"})
# A server's programs expect a home and a place for temporary files.
_PREPARE = f'mkdir -p {HOME}/tmp && cd {HOME} && export TMPDIR={HOME}/tmp && exec "$@"'
_TAIL_CHARACTERS = 300


class SandboxedServer:
    """See `ServerProcess`."""

    def __init__(
        self, command: Sequence[str], limits: SandboxLimits, folders: Sequence[Path] = ()
    ) -> None:
        """Starts a command line that may read these folders of the machine."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        access = SandboxAccess(tuple(folders), _EXEMPTIONS, self._errors.fileno())
        try:
            self._sandbox: Sandbox = open_sandbox(
                ["/bin/sh", "-c", _PREPARE, "prepare", *command], limits, access=access
            )
        except BaseException:
            self._errors.close()
            raise

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to it."""
        return self._sandbox.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from it."""
        return self._sandbox.stdout

    def error_tail(self) -> str:
        """The last characters of the server's error output."""
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        text = os.pread(
            self._errors.fileno(), 4 * _TAIL_CHARACTERS, max(0, size - 4 * _TAIL_CHARACTERS)
        )
        return text.decode(errors="replace").strip()[-_TAIL_CHARACTERS:]

    def close(self) -> None:
        """Ends the server and every process that it started."""
        with self._errors:
            self._sandbox.close()
