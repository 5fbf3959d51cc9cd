"""Tasks for an agent in a shell: find, create, edit and report files.

The transcript decides: the first action that matches the closing pattern ends the episode, and its
output is right or wrong.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentworld.domains.start_files import describe_files, make_files
from agentworld.domains.tasks import NO_GOAL, Goal, SolvedTask, new_task
from agentworld.domains.transcript import closes
from agentworld.domains.words import EpisodeWords, episode_words
from agentworld.records.task import SuccessRule, Task

NAME = "shell"
_ANSWER = r"echo [a-z. ]+"


@dataclass(frozen=True)
class ShellTask(SolvedTask):
    """A solved task and the files at its start."""

    files: dict[str, str]


def solved_task(seed: int, *, held_out: bool, has_goal: bool = True) -> ShellTask:
    """The task of a seed, always the same. Without a goal, no action closes it."""
    rng = random.Random(f"task {seed} {held_out}")
    words = episode_words(rng, held_out=held_out)
    files = make_files(rng, words)
    family = rng.choice(list(_MAKERS)) if has_goal else "explore"
    goal = _MAKERS[family](rng, words, files) if has_goal else NO_GOAL
    task = new_task(
        NAME,
        goal,
        domain=NAME,
        family=family,
        initial_state=describe_files(files),
        seed=seed,
        held_out=held_out,
    )
    return ShellTask(task, words, goal.steps, files)


def outcome(task: Task, action: str, observation: str) -> bool | None:
    """Whether the step that closes a task succeeded; null if the step does not close it."""
    if not closes(task.success, action):
        return None
    output, _, _prompt_line = observation.rpartition("\n")
    return output == task.success.output


def files_agree(rule: SuccessRule, files: Mapping[str, str]) -> bool | None:
    """Whether a file (path: text) has the output that the closing action must show.

    Null if the closing pattern is not a literal `cat FILE`, because then no file shows success. The
    file may be in any folder.
    """
    action = re.sub(r"\\(.)", r"\1", rule.closing)
    if re.escape(action) != rule.closing or not re.fullmatch(r"cat [^./-][^/]*", action):
        return None
    name = action.removeprefix("cat ")
    return any(
        path.rpartition("/")[2] == name and text == rule.output for path, text in files.items()
    )


def _create(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> Goal:
    name, text = _new_name(rng, words, files), _phrase(rng, words)
    steps = (f"echo {text} > {name}", f"cat {name}")
    return Goal(f"write {text} to {name}", _rule_for_file(name, text), steps)


def _edit(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> Goal:
    name, (old, new) = _new_name(rng, words, files), rng.sample(words.contents, 2)
    files[name] = f"{old}\n"
    steps = (f"echo {new} >> {name}", f"cat {name}")
    return Goal(f"append {new} to {name}", _rule_for_file(name, f"{old}\n{new}"), steps)


def _find(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> Goal:
    name, (word, other) = _new_name(rng, words, files), rng.sample(words.contents, 2)
    for path, text in files.items():
        files[path] = re.sub(rf"\b{word}\b", other, text)
    files[name] = " ".join(rng.sample([word, rng.choice(words.contents)], 2)) + "\n"
    return Goal(f"find {word}", _rule_for_answer(name), (f"grep -l {word} *", f"echo {name}"))


def _report(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> Goal:
    name, text = _new_name(rng, words, files), _phrase(rng, words)
    files[name] = f"{text}\n"
    return Goal(f"report {name}", _rule_for_answer(text), (f"cat {name}", f"echo {text}"))


def _phrase(rng: random.Random, words: EpisodeWords) -> str:
    return " ".join(rng.sample(words.contents, rng.randint(1, 2)))


def _new_name(rng: random.Random, words: EpisodeWords, files: dict[str, str]) -> str:
    names = {path.rpartition("/")[2] for path in files}
    return rng.choice([f"{word}.txt" for word in words.names if f"{word}.txt" not in names])


def _rule_for_file(name: str, text: str) -> SuccessRule:
    return SuccessRule(closing=re.escape(f"cat {name}"), output=text)


def _rule_for_answer(text: str) -> SuccessRule:
    return SuccessRule(closing=_ANSWER, output=text)


_MAKERS: dict[str, Callable[[random.Random, EpisodeWords, dict[str, str]], Goal]] = {
    "create": _create,
    "edit": _edit,
    "find": _find,
    "report": _report,
}
