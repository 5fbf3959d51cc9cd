"""A live bash shell in a sandbox: one command in, what the terminal showed out.

The shell is an interactive bash, so that its messages are those a person sees. Its prompt
line, `[exit status] folder`, ends every observation and so none is ever empty.
"""

import os
import secrets
import select
import shlex
import time
from types import TracebackType
from typing import NoReturn, Self

from agentworld.domains.sandbox import HOME, SandboxLimits, open_sandbox, stdin_of, stdout_of
from agentworld.errors import SandboxBroken

_MAX_OUTPUT_BYTES = 64 << 10

_READY = b"\x1eready\n"

# The outer shell hands its own input to one inner bash per episode and cleans up after it.
# It says when it is ready, because an inner bash may read ahead of the line that ends it.
# It leaves where it cannot clean up: no episode begins with what another one left behind. Whoever
# was killed is there until the kernel is done with it.
_OUTER = f"""
shopt -s dotglob nullglob extglob
while printf '\\036ready\\n' && IFS= read -r prompt; do
  [[ -d {HOME} ]] || mkdir {HOME}
  left=(/home/!(agent) {HOME}/*)
  (( ! ${{#left[@]}} )) || rm -rf -- "${{left[@]}}"
  left=(/home/!(agent) {HOME}/*)
  (( ! ${{#left[@]}} )) && [[ -w {HOME} ]] && cd {HOME} || exit
  PS1="$prompt" PS2= bash --norc --noprofile --noediting +H -i
  while kill -9 -1 2>/dev/null; do :; done
done
"""

# Builtins only, so that nothing forks. The last line gives the next command the `$?` and `$_`
# that it would have seen, and takes the function away.
_STATE = r"""{
__status=$? __last=$_
__seen() {
  local path lines line text
  for path in "$1"*; do
    if [[ -f $path && -r $path ]]; then
      text=
      mapfile -t lines < "$path"
      for line in "${lines[@]}"; do text+=" / $line"; done
      printf '%s: %s\n' "$path" "${text:3}"
    elif [[ -d $path && ! -L $path ]]; then
      lines=("$path"/*)
      [[ -e ${lines[0]} ]] || printf '%s/: \n' "$path"
      __seen "$path/"
    fi
  done
}
__seen ''
__seen() { unset -f __seen; unset __status __last; return $1; }
__seen "$__status" "$__last"
}"""


class LiveShell:
    """One sandbox; `reset` begins an episode in an empty home, `step` runs one command in it.

    `num_steps` counts the commands that ran: the evidence that training took none.
    """

    def __init__(self, limits: SandboxLimits = SandboxLimits(), *, seconds: float = 5.0) -> None:
        self._limits = limits
        self._seconds = seconds
        self._mark = b""  # empty until the first episode
        self.num_steps = 0
        self._process = open_sandbox(["/bin/bash", "-c", _OUTER], limits)

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
        """Begins an episode: a new bash in an empty home that holds these files (path: text)."""
        if self._mark:
            self._send("exit")
        # A fresh mark for each episode, so that what an earlier one learned of it is worthless.
        self._mark = f"\x1e{secrets.token_hex(6)} ".encode()
        self._read_to(_READY)
        self._send(f"\\n{self._mark.decode()}[$?] \\w\\n")
        self._read_to(self._mark)
        started = self._run(_start_commands(files or {}))
        if started != "[0] ~":
            self.close()
            raise SandboxBroken(f"the episode's files could not be written: {started[:200]!r}")

    def step(self, action: str) -> str:
        """Runs one command; returns its output and the prompt line after it.

        Raises SandboxBroken when it takes too long, prints too much or ends the shell.
        """
        self.num_steps += 1
        return self._run(action)

    def state(self) -> str:
        """The files of the current folder, in the form of `describe_files`; it is no step.

        An empty folder is told as `name/: `. Files whose names begin with a dot are left out.
        """
        self._send(_STATE)
        files, _ = self._read_to(self._mark)
        return "\n".join(sorted(files.splitlines(), key=_path_of)) or "empty"

    def close(self) -> None:
        """Ends the sandbox and everything in it."""
        self._process.kill()
        self._process.wait()
        stdin_of(self._process).close()
        stdout_of(self._process).close()

    def _run(self, command: str) -> str:
        if "\x00" in command:
            raise ValueError("a command cannot hold a NUL byte")
        self._send(f"eval {shlex.quote(command)} </dev/null")
        output, prompt = self._read_to(self._mark)
        return f"{output}\n{prompt}" if output else prompt

    def _send(self, line: str) -> None:
        try:
            stdin_of(self._process).write(line.encode() + b"\n")
        except BrokenPipeError as error:
            raise SandboxBroken("the sandboxed shell is gone; open a new one") from error

    def _read_to(self, mark: bytes) -> tuple[str, str]:
        """Reads up to a mark and the end of its line; returns what came before and after it."""
        seen = b""
        deadline = time.monotonic() + self._seconds
        pipe = stdout_of(self._process).fileno()
        while True:
            output, found, line = seen.partition(mark)
            if found and (mark.endswith(b"\n") or line.endswith(b"\n")):
                text = output.decode(errors="replace").removesuffix("\n").removesuffix("\n")
                return text, line.decode(errors="replace").rstrip("\n")
            if _READY in seen:  # the outer shell's word: the inner one is gone
                self._break("left the shell")
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(pipe, 65536) if ready else b""
            seen += piece
            if not piece:
                self._break("ended the sandbox" if ready else "took too long")
            if len(seen) > _MAX_OUTPUT_BYTES:
                self._break("printed too much")

    def _break(self, why: str) -> NoReturn:
        self.close()
        raise SandboxBroken(f"the sandboxed command {why}; the episode is over")


def _start_commands(files: dict[str, str]) -> str:
    """One line for the whole start of an episode, because each line is a round trip."""
    folders = sorted({path.rpartition("/")[0] for path in files} - {""})
    commands = ["set +o history", "unset PS2 OLDPWD", "PROMPT_DIRTRIM=0", "history -c"]
    if folders:
        commands.append("mkdir -p " + shlex.join(folders))
    for path, text in files.items():
        if not path.endswith("/"):
            commands.append(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}")
    return " && ".join(commands)


def _path_of(line: str) -> str:
    return line.partition(": ")[0]
