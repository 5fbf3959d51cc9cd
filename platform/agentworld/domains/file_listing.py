"""The files of a sandbox as its first process reads them, so that no command can misreport them."""

from agentworld.domains.pipes import Pipes

LISTER = r"""
list() {
  local path lines IFS=$'\n'
  for path in "$1"*; do
    if [[ -f $path && -r $path ]]; then
      mapfile -t lines < "$path"
      printf '%s\0%s\0' "$path" "${lines[*]}"
    elif [[ -d $path && ! -L $path ]]; then
      lines=("$path"/*)
      [[ -e ${lines[0]} ]] || printf '%s/\0\0' "$path"
      list "$path/"
    elif [[ -e $path ]]; then
      printf '%s\0\0' "$path"
    fi
  done
}
while IFS= read -r -u "$requests" folder; do
  cd -- "$folder" && list ''
  printf '\0'
done >&"$answers"
"""
"""The end of a supervisor in bash: it answers each folder in `$requests` to `$answers`."""

END_SUPERVISOR = "while kill -USR1 1; do sleep 0.1; done"
"""Ends a supervisor that has set `trap exit USR1`; it runs when the supervisor's shell has ended.

It repeats the signal, because bash loses one that comes just before `read` blocks.
"""


def read_files(supervisor: Pipes, folder: str, deadline: float) -> dict[str, str]:
    """The texts below a folder by their paths, which end in `/` for an empty folder.

    What is no file, or cannot be read, has an empty text. The last line break of a text is left
    out, and so are names that begin with a dot, unless the supervisor has set `dotglob`. Raises
    EnvironmentBroken if there is no answer in time.
    """
    answer = supervisor.exchange(f"{folder}\n".encode(), _is_whole_list, deadline)
    parts = answer.decode(errors="replace").split("\0")[:-2]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _is_whole_list(answer: bytes) -> bool:
    """Whether an empty path ends it; each path before is followed by its text."""
    return b"" in answer.split(b"\0")[:-1:2]
