"""Exploring policies: a random one over commands and programs, and one that pursues a task."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from agentworld.domains.explorers import ScriptedExplorer, pursue
from agentworld.domains.terminal.keys import parse_keys, render_keys
from agentworld.domains.terminal.tasks import TerminalTask, type_keys
from agentworld.domains.words import EpisodeWords

_START_SECONDS = 5.0  # a wait ends as soon as the program reads keys
_GLANCE_SECONDS = 0.1
_UNKNOWN = 0.1


@dataclass
class Beliefs:
    """The files that an explorer expects in its home."""

    rng: random.Random
    words: EpisodeWords
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def file(self) -> str:
        """An existing file, or rarely any other name."""
        is_unknown = not self.files or self.rng.random() < _UNKNOWN
        return self.new_file() if is_unknown else self.rng.choice(self.files[-3:])

    def new_file(self) -> str:
        """A name from the episode's names."""
        return f"{self.rng.choice(self.words.names)}.txt"

    def word(self) -> str:
        """A word for the content of a file."""
        return self.rng.choice(self.words.contents)

    def phrase(self) -> str:
        """One to three words."""
        return " ".join(self.rng.choices(self.words.contents, k=self.rng.choice((1, 2, 3))))


Move = Callable[[Beliefs], Iterator[str]]


def new_explorer(
    rng: random.Random, solved: TerminalTask, *, pursues_task: bool, num_turns: int
) -> ScriptedExplorer:
    """An explorer of a task's files that takes at most `num_turns` turns."""
    beliefs = Beliefs(rng, solved.words, list(solved.files))
    actions = _random_actions(beliefs)
    if pursues_task:
        detours = (next(_one_move(beliefs, _COMMANDS)) for _ in iter(int, 1))
        actions = pursue(rng, solved.steps, detours, partial(_perturb, beliefs))
    return ScriptedExplorer(actions, num_turns)


def _random_actions(beliefs: Beliefs) -> Iterator[str]:
    """An endless stream; a program that was opened is used and closed before the next command."""
    while True:
        yield from _one_move(beliefs, {**_COMMANDS, **_PROGRAMS})


def _one_move(beliefs: Beliefs, moves: dict[Move, float]) -> Iterator[str]:
    (move,) = beliefs.rng.choices(list(moves), list(moves.values()))
    return move(beliefs)


def _perturb(beliefs: Beliefs, step: str) -> str:
    """The same keys with one of the episode's words replaced."""
    (first, *rest) = parse_keys(step)
    content_words = set(beliefs.words.contents)
    places = [word for word in first.keystrokes.split() if word in content_words]
    if not places:
        return step
    text = first.keystrokes.replace(beliefs.rng.choice(places), beliefs.word(), 1)
    return render_keys([first.model_copy(update={"keystrokes": text}), *rest])


def _command(make: Callable[[Beliefs], str]) -> Move:
    def move(beliefs: Beliefs) -> Iterator[str]:
        yield type_keys(make(beliefs) + "\n")

    return move


def _write(beliefs: Beliefs) -> Iterator[str]:
    name, operator = beliefs.new_file(), beliefs.rng.choice((">", ">", ">>"))
    beliefs.files.append(name)
    yield type_keys(f"echo {beliefs.phrase()} {operator} {name}\n")


def _here_document(beliefs: Beliefs) -> Iterator[str]:
    name = beliefs.new_file()
    beliefs.files.append(name)
    yield type_keys(f"cat > {name} <<EOF\n{beliefs.phrase()}\n{beliefs.phrase()}\nEOF\n")


def _make_folder(beliefs: Beliefs) -> Iterator[str]:
    name = beliefs.rng.choice(beliefs.words.names)
    beliefs.folders.append(name)
    yield type_keys(f"mkdir {name}\n")


def _enter(beliefs: Beliefs) -> Iterator[str]:
    name = beliefs.rng.choice(beliefs.folders or beliefs.words.names)
    yield type_keys(f"cd {name}\n")
    yield type_keys("pwd\n")
    yield type_keys("cd\n")


def _move_file(beliefs: Beliefs) -> Iterator[str]:
    old, new = beliefs.file(), beliefs.new_file()
    beliefs.files.append(new)
    yield type_keys(f"{beliefs.rng.choice(('cp', 'mv'))} {old} {new}\n")


def _two_commands(beliefs: Beliefs) -> Iterator[str]:
    yield type_keys(f"wc -w {beliefs.file()}\n", f"tail -n 1 {beliefs.file()}\n")


def _edit_line(beliefs: Beliefs) -> Iterator[str]:
    yield type_keys(f"echo {beliefs.phrase()}")
    yield type_keys(beliefs.rng.choice(("C-u", "C-c", "Enter", "C-w")))
    yield type_keys("C-c")


def _malformed(beliefs: Beliefs) -> Iterator[str]:
    yield beliefs.rng.choice((f"cat {beliefs.file()}", '{"keys": "ls\\n"}', '[{"keystrokes": 1}]'))


def _page(beliefs: Beliefs) -> Iterator[str]:
    yield type_keys(f"less {beliefs.file()}\n", duration=_START_SECONDS)
    yield type_keys(f"/{beliefs.word()}\n")
    yield type_keys("q", "q", "C-u")


def _calculate(beliefs: Beliefs) -> Iterator[str]:
    yield type_keys("python3 -q\n", duration=_START_SECONDS)
    number, word = beliefs.rng.randint(2, 99), beliefs.word()
    lines = (
        f"x = {number}\n",
        f"x * {beliefs.rng.randint(2, 99)}\n",
        f"'{word}'.upper()\n",
        f"{word}\n",
        f"print(open('{beliefs.file()}').read())\n",
    )
    for line in beliefs.rng.sample(lines, 2):
        yield type_keys(line)
    yield type_keys("C-d")


def _copy_lines(beliefs: Beliefs) -> Iterator[str]:
    name = beliefs.new_file()
    beliefs.files.append(name)
    target = beliefs.rng.choice(("", f" > {name}"))
    yield type_keys(f"cat{target}\n")
    yield type_keys(f"{beliefs.phrase()}\n")
    yield type_keys(beliefs.rng.choice(("C-d", "C-c")))


def _edit(beliefs: Beliefs) -> Iterator[str]:
    name = beliefs.file()
    beliefs.files.append(name)
    # vim waits with its own time limit, so each of these takes its whole duration.
    yield type_keys(f"vi {name}\n", f"O{beliefs.phrase()}", "Escape", duration=0.5)
    yield type_keys(":wq\n", "clear\n")


def _sleep(_beliefs: Beliefs) -> Iterator[str]:
    yield type_keys("sleep 30\n", duration=_GLANCE_SECONDS)
    yield type_keys("C-c")
    yield type_keys("echo $?\n")


_COMMANDS: dict[Move, float] = {
    _write: 12,
    _here_document: 3,
    _make_folder: 4,
    _enter: 2,
    _move_file: 4,
    _two_commands: 3,
    _edit_line: 2,
    _malformed: 1,
    _command(lambda beliefs: f"cat {beliefs.file()}"): 14,
    _command(lambda _: "ls"): 7,
    _command(lambda _: "ls -p | sort -r"): 2,
    _command(lambda beliefs: f"rm {beliefs.file()}"): 3,
    _command(lambda beliefs: f"grep -n {beliefs.word()} *"): 3,
    _command(lambda beliefs: f"sort {beliefs.file()} | uniq -c"): 2,
    _command(lambda beliefs: f"sed -i s/{beliefs.word()}/{beliefs.word()}/ {beliefs.file()}"): 2,
    _command(lambda beliefs: f"{beliefs.word()} {beliefs.file()}"): 1,
    _command(lambda _: "echo $?"): 3,
    _command(lambda _: "clear"): 2,
}
_PROGRAMS: dict[Move, float] = {_page: 3, _calculate: 3, _copy_lines: 4, _sleep: 2, _edit: 1}
