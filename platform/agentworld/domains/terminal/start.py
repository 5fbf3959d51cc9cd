"""The files that an episode starts with, and how a simulator's prompt tells them."""

import random

MAX_FILES = 4


def make_files(rng: random.Random, words: list[str]) -> dict[str, str]:
    """A few files, some in a folder, of one to three short lines."""
    files = {}
    folder = rng.choice(words)
    for word in rng.sample(words, rng.randint(0, MAX_FILES)):
        inside = f"{folder}/" if word != folder and rng.random() < 0.25 else ""
        lines = (
            " ".join(rng.choices(words, k=rng.randint(1, 3)))
            for _ in range(rng.choice((1, 1, 2, 3)))
        )
        files[f"{inside}{word}.txt"] = "".join(f"{line}\n" for line in lines)
    return files


def describe_files(files: dict[str, str]) -> str:
    """One line for each file, its lines parted by ` / `, such as `rimo.txt: kolu tane / besa`."""
    if not files:
        return "empty"
    return "\n".join(
        f"{path}: " + " / ".join(text.splitlines()) for path, text in sorted(files.items())
    )


def parse_files(initial_state: str) -> dict[str, str]:
    """The inverse of `describe_files`."""
    if initial_state == "empty":
        return {}
    files = {}
    for line in initial_state.splitlines():
        path, _, text = line.partition(": ")
        files[path] = "".join(f"{part}\n" for part in text.split(" / ") if part)
    return files
