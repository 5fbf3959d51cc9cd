"""The files at an episode's start, and their form in a simulator's prompt."""

import random

from agentworld.domains.words import EpisodeWords

_NUM_FILES = (0, 1, 1, 2)


def make_files(rng: random.Random, words: EpisodeWords) -> dict[str, str]:
    """Up to two files, some in a folder, with one or two short lines each."""
    folder, *names = words.names
    files = {}
    for name in rng.sample(names, rng.choice(_NUM_FILES)):
        inside = f"{folder}/" if rng.random() < 0.2 else ""
        lines = (_line(rng, words) for _ in range(rng.choice((1, 1, 2))))
        files[f"{inside}{name}.txt"] = "".join(f"{line}\n" for line in lines)
    return files


def _line(rng: random.Random, words: EpisodeWords) -> str:
    return " ".join(rng.choices(words.contents, k=rng.choice((1, 2, 2, 3))))


def describe_files(files: dict[str, str]) -> str:
    """One line for each file, with ` / ` between its lines: `rimo.txt: kolu tane / besa`.

    Without files the text is empty.
    """
    return "\n".join(
        f"{path}: " + " / ".join(text.splitlines()) for path, text in sorted(files.items())
    )


def parse_files(initial_state: str) -> dict[str, str]:
    """The inverse of `describe_files`."""
    files = {}
    for line in initial_state.splitlines():
        path, _, text = line.partition(": ")
        files[path] = "".join(f"{part}\n" for part in text.split(" / ") if part)
    return files
