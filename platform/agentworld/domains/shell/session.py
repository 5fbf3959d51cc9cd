"""A live bash in a sandbox: each step runs one command and returns what the terminal shows.

The bash is interactive, so its messages are those that a person sees. Its prompt line,
`[exit status] folder`, ends every observation, so no observation is empty.
"""

import os
import secrets
import shlex
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from agentworld.domains.file_listing import END_SUPERVISOR, LISTER, read_files
from agentworld.domains.pipes import Pipes
from agentworld.domains.sandbox import HOME, Sandbox, SandboxLimits, open_sandbox
from agentworld.errors import EnvironmentBroken

_Answer = TypeVar("_Answer")

# The supervisor is the first process of a sandbox. It starts the shell, then lists files on
# request, over pipes that the shell does not have. Commands of the shell cannot kill it, because it
# is the first process, and cannot read its memory. It ends when the shell does.
_SUPERVISOR = f"""
requests=$1 answers=$2
mkdir {HOME} && cd {HOME} || exit
trap exit USR1
set -m
{{ bash --norc --noprofile --noediting +H -i; {END_SUPERVISOR}; }} \\
  <&0 {{requests}}<&- {{answers}}>&- &
exec </dev/null >/dev/null 2>&1
{LISTER}
"""

# A prompt carries a mark that is new for each command. The shell asks for it when the command is
# over, so no command finds it in a variable, the history or the shell's input; and no command can
# change the prompt. A command can still pose as the shell and read the mark that it asked for: then
# the real prompt finds none and the episode breaks, so no observation moves to another command.
# The mark is not in PS1, whose text bash sometimes expands before it runs PROMPT_COMMAND.
_ASKS, _ANSWERS = b"\x1d", b"\x1e"
_ASK = r'\builtin printf "\035"; \builtin read -r __mark; \builtin printf "\036%s " "$__mark"'
_PROMPT = rf"""
PS1='[$?] \w\n'
PROMPT_COMMAND='{{ {_ASK}; }} 2>/dev/null'
readonly PS1 PROMPT_COMMAND
""".strip().replace("\n", "; ")


class LiveShell:
    """A shell; `reset` begins an episode in a new sandbox, `step` runs one command in it.

    `num_steps` counts the commands that ran, as evidence that a training ran none.
    """

    def __init__(self, limits: SandboxLimits = SandboxLimits(), *, seconds: float = 5.0) -> None:
        self.num_steps = 0
        self._limits = limits
        self._seconds = seconds
        self._sandbox: Sandbox | None = None
        self._shell = self._supervisor = Pipes(-1, -1)
        self._folder = HOME
        self._ahead = b""
        """Output of background commands that came after the last prompt."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def reset(self, files: dict[str, str] | None = None) -> None:
        """Begins an episode: a new bash in an empty home that holds these files (path: text).

        The sandbox of the earlier episode ends, so nothing of it remains.
        """
        self.close()
        self._open()
        started = self._run(_start_commands(files or {}), first=_PROMPT + "; ")
        if not started.endswith("[0] ~"):
            self.close()
            raise EnvironmentBroken(f"the episode's files could not be written: {started[:200]!r}")

    def step(self, action: str) -> str:
        """Runs one command; returns its output and the prompt line after it.

        Raises EnvironmentBroken when it takes too long, prints too much or ends the shell.
        """
        self.num_steps += 1
        return self._run(action)

    def state(self) -> str:
        """The files below the current folder, in the form of `describe_files`; not a step.

        An empty folder is `name/: `. The text is empty if there is no file. Files whose names begin
        with a dot are left out.
        """
        files = sorted(self.files(self._folder).items())
        lines = (f"{path}: " + " / ".join(text.split("\n")) for path, text in files)
        return "\n".join(lines)

    def files(self, folder: str = HOME) -> dict[str, str]:
        """The texts of all files below a folder, by path; the path of an empty folder ends in `/`.

        The supervisor reads them, so no command can falsify them. The last line break is left out.
        """
        deadline = time.monotonic() + self._seconds
        return self._ask(lambda: read_files(self._supervisor, folder, deadline))

    def fields(self) -> dict[str, str]:
        """The current folder, which no file's path can be, and the texts of all files by path."""
        return {"": self._folder, **self.files()}

    def close(self) -> None:
        """Ends the sandbox and everything in it."""
        if self._sandbox is not None:
            self._sandbox.close()
            os.close(self._supervisor.stdin_fd)
            os.close(self._supervisor.stdout_fd)
            self._sandbox = None

    def _open(self) -> None:
        requests, request_writer = os.pipe()
        answer_reader, answers = os.pipe()
        try:
            command = ["/bin/bash", "-c", _SUPERVISOR, "supervisor", str(requests), str(answers)]
            self._sandbox = open_sandbox(command, self._limits, (requests, answers))
        except BaseException:
            os.close(request_writer)
            os.close(answer_reader)
            raise
        finally:
            os.close(requests)
            os.close(answers)
        self._supervisor = Pipes(request_writer, answer_reader)
        self._shell = Pipes(self._sandbox.stdin.fileno(), self._sandbox.stdout.fileno())
        self._folder, self._ahead = HOME, b""

    def _run(self, command: str, first: str = "") -> str:
        if "\x00" in command:
            raise ValueError("a command cannot hold a NUL byte")
        deadline = time.monotonic() + self._seconds
        line = f"{first}eval {shlex.quote(command)} </dev/null\n".encode()
        buffer = self._exchange(
            self._shell, line, lambda buffer: _ASKS in buffer, deadline, self._ahead
        )
        mark = secrets.token_hex(6).encode()
        end = _ANSWERS + mark + b" "
        buffer = self._exchange(
            self._shell,
            mark + b"\n",
            lambda buffer: b"\n" in buffer.partition(end)[2],
            deadline,
            buffer,
        )
        output, _, rest = buffer.partition(end)
        prompt, _, self._ahead = rest.partition(b"\n")
        return self._observation(output, prompt)

    def _observation(self, content: bytes, prompt: bytes) -> str:
        before, _, after = content.rpartition(_ASKS)
        output = (before + after).decode(errors="replace").removesuffix("\n")
        line = prompt.decode(errors="replace")
        folder = line.partition(" ")[2]
        self._folder = HOME + folder[1:] if folder.startswith("~") else folder
        return f"{output}\n{line}" if output else line

    def _exchange(
        self,
        pipes: Pipes,
        data: bytes,
        is_whole: Callable[[bytes], bool],
        deadline: float,
        buffer: bytes = b"",
    ) -> bytes:
        return self._ask(lambda: pipes.exchange(data, is_whole, deadline, buffer))

    def _ask(self, exchange: Callable[[], _Answer]) -> _Answer:
        if self._sandbox is None:
            raise EnvironmentBroken("no episode is open in this shell; reset begins one")
        try:
            return exchange()
        except EnvironmentBroken:
            self.close()
            raise


def _start_commands(files: dict[str, str]) -> str:
    """All commands of an episode's start in one line, because each line is a round trip."""
    folders = sorted({path.rpartition("/")[0] for path in files} - {""})
    commands = ["set +o history", "unset PS2 OLDPWD", "PROMPT_DIRTRIM=0", "history -c"]
    if folders:
        commands.append("mkdir -p " + shlex.join(folders))
    for path, text in files.items():
        if not path.endswith("/"):
            commands.append(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}")
    return " && ".join(commands)
