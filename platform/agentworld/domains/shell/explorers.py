"""Exploring policies: a random one that covers the grammar, and one that pursues a task."""

import random
from collections.abc import Callable, Iterator
from functools import partial

from agentworld.domains.explorers import ScriptedExplorer, pursue
from agentworld.domains.shell.explorer_state import ExplorerState
from agentworld.domains.shell.tasks import ShellTask

Move = Callable[[ExplorerState], str]


def new_explorer(
    rng: random.Random, solved: ShellTask, *, pursues_task: bool, num_turns: int
) -> ScriptedExplorer:
    """An explorer of a task's files that takes at most `num_turns` turns."""
    state = ExplorerState(rng, solved.words)
    for path, text in solved.files.items():
        state.add_file(path)
        state.recent_words += text.split()
    actions = _random_commands(state)
    if pursues_task:
        actions = pursue(rng, solved.steps, actions, partial(_perturb, state))
    return ScriptedExplorer(actions, num_turns)


def _random_commands(state: ExplorerState) -> Iterator[str]:
    """An endless stream of random commands, mostly with known names."""
    moves, weights = zip(*_MOVES.items(), strict=True)
    while True:
        yield state.rng.choices(moves, weights)[0](state)


def _perturb(state: ExplorerState, step: str) -> str:
    """The same command with another word in one place."""
    parts = step.split(" ")
    place = state.rng.randrange(1, len(parts))
    if parts[place].isalpha() or "." in parts[place]:
        is_file = parts[place].endswith(".txt")
        parts[place] = state.new_file() if is_file else state.word()
    return " ".join(parts)


def _write(state: ExplorerState) -> str:
    name, text = _pick_output_file(state), state.phrase()
    state.add_file(name)
    return f"echo {text} > {name}"


def _append(state: ExplorerState) -> str:
    name, text = state.file(), state.phrase()
    state.add_file(name)
    return f"echo {text} >> {name}"


def _pick_output_file(state: ExplorerState) -> str:
    if state.rng.random() < 0.3:
        return state.file()
    folders = state.folders[state.cwd].folders
    inside = f"{state.rng.choice(folders)}/" if folders and state.rng.random() < 0.3 else ""
    return inside + state.new_file()


def _touch(state: ExplorerState) -> str:
    name = state.new_file()
    state.add_file(name)
    return f"touch {name}"


def _make_folder(state: ExplorerState) -> str:
    name = state.folder() if state.rng.random() < 0.1 else state.name()
    state.add_folder(name)
    return f"mkdir {name}"


def _enter(state: ExplorerState) -> str:
    enters_parent = state.cwd and state.rng.random() < 0.4
    name = ".." if enters_parent else state.folder()
    state.enter(name)
    return f"cd {name}"


def _remove(state: ExplorerState) -> str:
    name = state.file()
    state.drop_file(name)
    return f"rm {name}"


def _copy(state: ExplorerState) -> str:
    old, new = state.file(), state.new_file()
    state.add_file(new)
    return f"cp {old} {new}"


def _move(state: ExplorerState) -> str:
    old, new = state.file(), state.new_file()
    state.drop_file(old)
    state.add_file(new)
    return f"mv {old} {new}"


def _export(state: ExplorerState) -> str:
    name = state.rng.choice("ABCDE")
    state.variables.append(name)
    return f"export {name}={state.word()}"


def _show_variable(state: ExplorerState) -> str:
    if not state.variables:
        return _export(state)
    is_defined = state.rng.random() < 0.9
    return f"echo ${state.rng.choice(state.variables if is_defined else list('ABCDE'))}"


def _show_nested(state: ExplorerState) -> str:
    folder = state.folder()
    files = state.folders.get(f"{state.cwd}/{folder}")
    name = state.rng.choice(files.files) if files and files.files else state.new_file()
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
    lambda state: f"cat {state.file()}": 18,
    lambda state: "ls": 10,
    lambda state: f"ls {state.folder()}": 2,
    lambda state: "pwd": 1,
    lambda state: f"grep {state.word()} {state.file()}": 4,
    lambda state: f"grep -l {state.word()} *": 3,
    lambda state: f"wc -l < {state.file()}": 2,
    lambda state: f"wc -w < {state.file()}": 2,
    lambda state: f"cat {state.file()} | grep {state.word()}": 2,
    lambda state: f"sort {state.file()}": 1,
    lambda state: f"head -n 1 {state.file()}": 2,
    lambda state: f"tail -n 1 {state.file()}": 2,
    lambda state: "ls | wc -l": 2,
    lambda state: "echo $?": 5,
    lambda state: f"echo {state.phrase()}": 2,
    lambda state: f"test -f {state.file()} && echo yes": 3,
    lambda state: f"{state.word()} {state.word()}": 1,
}
