"""Exploring policies: they try the shell's commands, or run an errand with detours and slips.

A wanderer covers the grammar. An errand pursues a task well enough that an agent can learn
from it what orders mean, and badly enough that there is much left for it to learn.
"""

import random
from collections.abc import Callable, Iterable, Iterator

from agentworld.domains.terminal.belief import Belief
from agentworld.domains.terminal.words import EpisodeWords

Move = Callable[[Belief], str]


def wander(belief: Belief, num_turns: int) -> Iterator[str]:
    """Random commands over names that are mostly known."""
    moves, weights = zip(*_MOVES.items(), strict=True)
    for _ in range(num_turns):
        yield belief.rng.choices(moves, weights)[0](belief)


def run_errand(belief: Belief, steps: Iterable[str]) -> Iterator[str]:
    """These steps, with a detour before one step in five and a slip in one in five."""
    for step in steps:
        while belief.rng.random() < 0.2:
            yield next(wander(belief, 1))
        yield _slip(belief, step) if belief.rng.random() < 0.2 else step


def _slip(belief: Belief, step: str) -> str:
    """The same command with one of its words exchanged."""
    parts = step.split(" ")
    place = belief.rng.randrange(1, len(parts))
    if parts[place].isalpha() or "." in parts[place]:
        is_file = parts[place].endswith(".txt")
        parts[place] = belief.new_file() if is_file else belief.word()
    return " ".join(parts)


def _write(belief: Belief) -> str:
    name, text = _pick_output_file(belief), belief.phrase()
    belief.add_file(name)
    return f"echo {text} > {name}"


def _append(belief: Belief) -> str:
    name, text = belief.file(), belief.phrase()
    belief.add_file(name)
    return f"echo {text} >> {name}"


def _pick_output_file(belief: Belief) -> str:
    if belief.rng.random() < 0.3:
        return belief.file()
    folders = belief.folders[belief.here].folders
    inside = f"{belief.rng.choice(folders)}/" if folders and belief.rng.random() < 0.3 else ""
    return inside + belief.new_file()


def _touch(belief: Belief) -> str:
    name = belief.new_file()
    belief.add_file(name)
    return f"touch {name}"


def _make_folder(belief: Belief) -> str:
    name = belief.folder() if belief.rng.random() < 0.1 else belief.name()
    belief.add_folder(name)
    return f"mkdir {name}"


def _enter(belief: Belief) -> str:
    up = belief.here and belief.rng.random() < 0.4
    name = ".." if up else belief.folder()
    belief.enter(name)
    return f"cd {name}"


def _remove(belief: Belief) -> str:
    name = belief.file()
    belief.drop_file(name)
    return f"rm {name}"


def _copy(belief: Belief) -> str:
    old, new = belief.file(), belief.new_file()
    belief.add_file(new)
    return f"cp {old} {new}"


def _move(belief: Belief) -> str:
    old, new = belief.file(), belief.new_file()
    belief.drop_file(old)
    belief.add_file(new)
    return f"mv {old} {new}"


def _export(belief: Belief) -> str:
    name = belief.rng.choice("ABCDE")
    belief.variables.append(name)
    return f"export {name}={belief.word()}"


def _show_variable(belief: Belief) -> str:
    if not belief.variables:
        return _export(belief)
    is_defined = belief.rng.random() < 0.9
    return f"echo ${belief.rng.choice(belief.variables if is_defined else list('ABCDE'))}"


def _show_nested(belief: Belief) -> str:
    folder = belief.folder()
    files = belief.folders.get(f"{belief.here}/{folder}")
    name = belief.rng.choice(files.files) if files and files.files else belief.new_file()
    return f"cat {folder}/{name}"


_MOVES: dict[Move, float] = {
    _write: 14,
    _append: 5,
    _touch: 2,
    _make_folder: 5,
    _enter: 6,
    _remove: 3,
    _copy: 2,
    _move: 2,
    _export: 3,
    _show_variable: 9,
    _show_nested: 2,
    lambda b: f"cat {b.file()}": 18,
    lambda b: "ls": 10,
    lambda b: f"ls {b.folder()}": 2,
    lambda b: "pwd": 1,
    lambda b: f"grep {b.word()} {b.file()}": 4,
    lambda b: f"grep -l {b.word()} *": 3,
    lambda b: f"wc -l < {b.file()}": 2,
    lambda b: f"wc -w < {b.file()}": 2,
    lambda b: f"cat {b.file()} | grep {b.word()}": 2,
    lambda b: f"sort {b.file()}": 1,
    lambda b: f"head -n 1 {b.file()}": 2,
    lambda b: f"tail -n 1 {b.file()}": 2,
    lambda b: "ls | wc -l": 2,
    lambda b: "echo $?": 5,
    lambda b: f"echo {b.phrase()}": 2,
    lambda b: f"test -f {b.file()} && echo yes": 3,
    lambda b: f"{b.word()} {b.word()}": 1,
}


def new_belief(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> Belief:
    """A belief that knows the files an episode starts with."""
    belief = Belief(rng, words)
    for path, text in files.items():
        belief.add_file(path)
        belief.met += text.split()
    return belief
