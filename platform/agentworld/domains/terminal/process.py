"""The sandbox of a terminal, in which a shell runs at a pty of this machine."""

import os
import shlex
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentworld.domains.file_listing import END_SUPERVISOR, LISTER, read_files
from agentworld.domains.pipes import Pipes
from agentworld.domains.sandbox import HOME, Sandbox, SandboxAccess, SandboxLimits, open_sandbox
from agentworld.domains.terminal.display import COLUMNS, LINES

LIMITS = SandboxLimits(
    disk_bytes=32 << 20,
    memory_bytes=1 << 30,
    data_bytes=192 << 20,
    processes=48,
    open_files=256,
    file_bytes=16 << 20,
)
_ALTERNATIVES = Path("/etc/alternatives")  # the folder of Debian's `vi`
_PROMPT = r"agent@world:\w\$ "
# Drops the capability of the sandbox's first process before the shell starts. Resets the signals
# that the sandbox's parent ignores, because programs inherit that: C-c would end none of them.
_SHELL = (
    "setpriv --inh-caps=-all --ambient-caps=-all setsid --ctty --wait env"
    " --default-signal -u OLDPWD -u SHLVL TERM=linux LC_ALL=C.UTF-8 HISTFILE= LESSHISTFILE=-"
    f" PYTHON_HISTORY=/dev/null {shlex.join([f'PS1={_PROMPT}'])} bash --norc --noprofile +H -i"
)


def _supervisor(requests: int, answers: int, tty: int, files: Mapping[str, str]) -> bytes:
    """The script of the first process, which `ps` shows as a bash without arguments.

    It writes the start's files, starts the shell at the pty, and then lists files on request over
    pipes that the shell does not have. It closes its own input, so braces make bash read it as a
    whole first.
    """
    folders = sorted({path.rpartition("/")[0] for path in files} - {""})
    return rf"""{{
mkdir {HOME} && cd {HOME} || exit
{shlex.join(["mkdir", "-p", *folders]) if folders else ":"}
{"".join(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}; " for path, text in files.items())}
trap exit USR1
set -m
{{ {_SHELL}; {END_SUPERVISOR}; }} <&{tty} >&{tty} 2>&1 {requests}<&- {answers}>&- {tty}<&- &
exec </dev/null >/dev/null 2>&1 {tty}<&-
requests={requests} answers={answers}
shopt -s dotglob
{LISTER}
exit
}}
""".encode()


class SandboxedTerminal:
    """See `TerminalProcess`."""

    def __init__(self, files: Mapping[str, str], limits: SandboxLimits = LIMITS) -> None:
        """Starts a shell in a home that holds these files (path: text)."""
        self.master, shell_side = os.openpty()
        self.line = os.open(os.ttyname(shell_side), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        termios.tcsetwinsize(shell_side, (LINES, COLUMNS))
        requests, request_writer = os.pipe()
        answer_reader, answers = os.pipe()
        self._supervisor = Pipes(request_writer, answer_reader)
        descriptors = (requests, answers, shell_side)
        folders = (_ALTERNATIVES,) if _ALTERNATIVES.is_dir() else ()
        access = SandboxAccess(folders, shows_processes=True)
        try:
            self._sandbox: Sandbox = open_sandbox(["/bin/bash"], limits, descriptors, access)
            # If the sandbox has ended already, the wait for the first prompt reports that.
            with suppress(BrokenPipeError):
                self._sandbox.stdin.write(_supervisor(*descriptors, files))
        except BaseException:
            self._close_files()
            raise
        finally:
            for file in descriptors:
                os.close(file)

    def is_alive(self) -> bool:
        """Whether the sandbox still runs; it ends with its shell."""
        return self._sandbox.process.poll() is None

    def files(self, deadline: float) -> dict[str, str]:
        """The files of the home by their paths; raises EnvironmentBroken at the deadline."""
        return read_files(self._supervisor, HOME, deadline)

    def close(self) -> None:
        """Ends the shell and every process that it started."""
        if self.master >= 0:
            self._sandbox.close()
            self._close_files()

    def _close_files(self) -> None:
        for file in (self.master, self.line, *self._supervisor):
            os.close(file)
        self.master = self.line = -1
