"""Tasks for an agent at a terminal; the files in its home decide about success.

In a transcript, showing the result's file closes a task; in a live environment the files decide.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from agentworld.domains.start_files import describe_files, make_files
from agentworld.domains.tasks import NO_GOAL, Goal, SolvedTask, new_task
from agentworld.domains.terminal.keys import Keys, render_keys
from agentworld.domains.words import EpisodeWords, episode_words
from agentworld.records.task import SuccessRule

NAME = "terminal"
_PROGRAM_SECONDS = 5.0  # a wait ends as soon as the program reads keys or has ended


@dataclass(frozen=True)
class TerminalTask(SolvedTask):
    """A solved task and the files at its start."""

    files: dict[str, str]


@dataclass
class _Draft:
    """The words that a family's tasks are made of, and the files at their start."""

    rng: random.Random
    words: EpisodeWords
    files: dict[str, str]

    def phrase(self, num_words: int = 2) -> str:
        return " ".join(self.rng.sample(self.words.contents, num_words))

    def new_file(self) -> str:
        file_names = {path.rpartition("/")[2] for path in self.files}
        names = [f"{word}.txt" for word in self.words.names if f"{word}.txt" not in file_names]
        return self.rng.choice(names)

    def add(self, *lines: str) -> str:
        name = self.new_file()
        self.files[name] = "".join(f"{line}\n" for line in lines)
        return name

    def goal(self, instruction: str, name: str, text: str, *steps: str, old_name: str = "") -> Goal:
        """The goal that a file has this content in the end, and that `old_name` does not exist."""
        files = {path: old for path, old in self.files.items() if path != old_name}
        state = describe_files({**files, name: text})
        rule = SuccessRule(
            closing=re.escape(f"cat {name}\n"), output=text.removesuffix("\n"), state=state
        )
        return Goal(instruction, rule, (*steps, type_keys(f"cat {name}\n")))


def type_keys(*texts: str, duration: float = 1.0) -> str:
    """An action that types these texts, each with its own duration."""
    return render_keys([Keys(keystrokes=text, duration=duration) for text in texts])


def solved_task(seed: int, *, held_out: bool, has_goal: bool = True) -> TerminalTask:
    """The task of a seed, always the same. Without a goal, no action closes it."""
    rng = random.Random(f"terminal {seed} {held_out}")
    words = episode_words(rng, held_out=held_out)
    draft = _Draft(rng, words, make_files(rng, words))
    family = rng.choice(list(_MAKERS)) if has_goal else "explore"
    goal = _MAKERS[family](draft) if has_goal else NO_GOAL
    task = new_task(
        NAME,
        goal,
        domain=NAME,
        family=family,
        initial_state=describe_files(draft.files),
        seed=seed,
        held_out=held_out,
    )
    return TerminalTask(task, words, goal.steps, draft.files)


def _create(draft: _Draft) -> Goal:
    name, text = draft.new_file(), draft.phrase()
    step = type_keys(f"echo {text} > {name}\n")
    return draft.goal(f"write {text} to {name}", name, f"{text}\n", step)


def _append(draft: _Draft) -> Goal:
    old, new = draft.phrase(), draft.phrase()
    name = draft.add(old)
    step = type_keys(f"echo {new} >> {name}\n")
    return draft.goal(f"append {new} to {name}", name, f"{old}\n{new}\n", step)


def _replace(draft: _Draft) -> Goal:
    first, old, new = draft.phrase(3).split()
    name = draft.add(f"{first} {old}")
    step = type_keys(f"sed -i s/{old}/{new}/ {name}\n")
    return draft.goal(f"replace {old} by {new} in {name}", name, f"{first} {new}\n", step)


def _rename(draft: _Draft) -> Goal:
    text = draft.phrase()
    old, new = draft.add(text), draft.new_file()
    step = type_keys(f"mv {old} {new}\n")
    return draft.goal(f"rename {old} to {new}", new, f"{text}\n", step, old_name=old)


def _sort(draft: _Draft) -> Goal:
    words = draft.phrase(3).split()
    name, new = draft.add(*words), draft.new_file()
    text = "".join(f"{word}\n" for word in sorted(words))
    step = type_keys(f"sort {name} > {new}\n")
    return draft.goal(f"write the sorted lines of {name} to {new}", new, text, step)


def _type_in(draft: _Draft) -> Goal:
    name, text = draft.new_file(), draft.phrase()
    steps = type_keys(f"cat > {name}\n", f"{text}\n"), type_keys("C-d")
    return draft.goal(f"type {text} into cat for {name}", name, f"{text}\n", *steps)


def _compute(draft: _Draft) -> Goal:
    first, second = draft.rng.randint(12, 99), draft.rng.randint(12, 99)
    name = draft.new_file()
    steps = (
        type_keys("python3 -q\n", duration=_PROGRAM_SECONDS),
        type_keys(f"print({first} * {second}, file=open('{name}', 'w'))\n"),
        type_keys("C-d", duration=_PROGRAM_SECONDS),
    )
    instruction = f"write {first} times {second} to {name} with python3"
    return draft.goal(instruction, name, f"{first * second}\n", *steps)


_MAKERS: dict[str, Callable[[_Draft], Goal]] = {
    "create": _create,
    "append": _append,
    "replace": _replace,
    "rename": _rename,
    "sort": _sort,
    "type": _type_in,
    "compute": _compute,
}
