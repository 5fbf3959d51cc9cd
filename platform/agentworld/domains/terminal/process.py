"""The wall of a terminal: a sandbox in which a shell has a pty of this machine."""

import os
import termios
from collections.abc import Mapping

from agentworld.domains.file_listing import LISTER, read_files
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
_PROMPT = r"agent@world:\w\$ "
# Programs inherit the signals that the sandbox's parent ignores: C-c would end none of them.
_SHELL = (
    "setsid --ctty --wait env --default-signal -u OLDPWD -u SHLVL TERM=linux LC_ALL=C.UTF-8"
    ' HISTFILE= LESSHISTFILE=- PYTHON_HISTORY=/dev/null PS1="$prompt"'
    " bash --norc --noprofile +H -i"
)
# The supervisor is the first process of a sandbox. It writes the start's files, starts the shell at
# the pty, and then lists files on request over pipes that the shell does not have.
_SUPERVISOR = rf"""
requests=$1 answers=$2 tty=$3 prompt=$4
shift 4
mkdir {HOME} && cd {HOME} || exit
while (($#)); do
  [[ $1 == */* ]] && mkdir -p "${{1%/*}}"
  printf %s "$2" > "$1"
  shift 2
done
trap exit USR1
set -m
{{ {_SHELL}; kill -USR1 1; }} <&$tty >&$tty 2>&1 {{requests}}<&- {{answers}}>&- {{tty}}<&- &
exec </dev/null >/dev/null 2>&1 {{tty}}<&-
{LISTER}
"""


class SandboxedTerminal:
    """See `TerminalProcess`."""

    def __init__(self, files: Mapping[str, str], limits: SandboxLimits = LIMITS) -> None:
        """Starts a shell in a home that holds these files (path: text)."""
        self.master, shell_side = os.openpty()
        self.line = os.open(os.ttyname(shell_side), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        termios.tcsetwinsize(shell_side, (LINES, COLUMNS))
        requests, to = os.pipe()
        back, answers = os.pipe()
        self._supervisor = Pipes(to, back)
        descriptors = (requests, answers, shell_side)
        words = [
            *map(str, descriptors),
            _PROMPT,
            *(word for file in files.items() for word in file),
        ]
        try:
            self._sandbox: Sandbox = open_sandbox(
                ["/bin/bash", "-c", _SUPERVISOR, "supervisor", *words],
                limits,
                descriptors,
                SandboxAccess(),
            )
        except BaseException:
            self._close_files()
            raise
        finally:
            for file in descriptors:
                os.close(file)

    def is_alive(self) -> bool:
        """Whether the sandbox runs, which ends with its shell."""
        return self._sandbox.process.poll() is None

    def files(self, deadline: float) -> dict[str, str]:
        """The files of the home by their paths; raises EnvironmentBroken at the deadline."""
        return read_files(self._supervisor, HOME, deadline)

    def close(self) -> None:
        """Ends the shell and all that it started."""
        if self.master >= 0:
            self._sandbox.close()
            self._close_files()

    def _close_files(self) -> None:
        for file in (self.master, self.line, *self._supervisor):
            os.close(file)
        self.master = self.line = -1
