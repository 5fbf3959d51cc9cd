"""Runs the console blocks of pages as a reader would: each line after a `$`, in order.

`python -m make.pages FOLDER PAGE...` runs the pages in a folder with `demo-output/smoke`, the store
of `make demo PROFILE=smoke`, and rewrites the printed output.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from agentworld.engine.process import free_port

ROOT = Path(__file__).parents[2]
STORE = "demo-output/smoke"
LEFT_OUT = "..."
"""A line that stands for any number of lines."""

_LONG = {"data-sets", "upgrades"}
"""Pages with commands that train or record for a minute."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_SHORT = 12
"""The length of an abbreviated id."""
_ID = re.compile(r"\b[0-9a-f]{12,64}\b")
_PORT = re.compile(r"\b8\d{3}\b")
_PROGRESS = re.compile(r"^[\w-]+ +(?:running|\d+%(?:, \d+ s to go)?|finished in \d+ s)$")
"""A progress line, which a terminal shows as a bar; a slow command prints one every 30 s."""
_FORMS = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (_ID, "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\bby \w+"), "by NAME"),
    (re.compile(r", \d+ cut off"), ""),
    (re.compile(r"; \d+ of \d+ answers are cut off or empty"), ""),
    (re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?|[-+]?\.\d+"), "N"),
    (re.compile(r"[─\s]+"), " "),
)
"""Parts that differ between runs: ids, times, user names, numbers, and the width of a column."""


class Example(NamedTuple):
    """A command of a page, and the lines of output below it."""

    command: str
    output: list[str]


def transcript(block: str) -> list[Example]:
    """The commands of a console block; a backslash at the end continues a line."""
    commands: list[Example] = []
    is_open = False
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append(Example(line[2:], []))
        elif is_open:
            commands[-1] = commands[-1]._replace(command=f"{commands[-1].command}\n{line}")
        else:
            commands[-1].output.append(line)
        is_open = line.endswith("\\") and (line.startswith("$ ") or is_open)
    return commands


def form(line: str) -> str:
    """A line without the parts that differ between runs."""
    for pattern, word in _FORMS:
        line = pattern.sub(word, line)
    return line.strip()


def shorten(page_lines: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The printed lines that a page shows: all, or those around `...`."""
    if LEFT_OUT not in page_lines:
        return [*printed]
    rest, lines = iter(printed), []
    for line in page_lines:
        lines.append(
            line if line == LEFT_OUT else next((new for new in rest if form(new) == form(line)), "")
        )
    return lines


class Terminal:
    """Runs the commands of a page in a folder, with `agentworld` and `python` of this checkout."""

    def __init__(self, folder: Path, programs: Path, ports: Mapping[str, int]) -> None:
        self.folder = folder
        self._servers: list[subprocess.Popen[str]] = []
        self._ports = dict(ports)
        self._ids: dict[str, str] = {}
        _write_program(programs / "agentworld", "-m agentworld_cli.main")
        _write_program(programs / "python", "")
        self._environment = {
            **{name: value for name, value in os.environ.items() if "AGENTWORLD" not in name},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "80",
        }
        self._environment.pop("MLFLOW_TRACKING_URI", None)

    def play(self, text: str, word: str = STORE) -> str:
        """Runs the console blocks of a page that contain a word; returns the page with the new
        output.
        """

        def replay(match: re.Match[str]) -> str:
            if word not in match[1]:
                return match[0]
            lines: list[str] = []
            for step in transcript(match[1]):
                printed = shorten(step.output, self.run(step))
                ids = [_ID.findall("\n".join(output)) for output in (step.output, printed)]
                for old, new in zip(*ids, strict=False):
                    self._ids |= {old: new, old[:_SHORT]: new[:_SHORT]}
                command = _ID.sub(lambda m: self._ids.get(m[0], m[0]), step.command)
                lines += [f"$ {command}", *printed]
            return "".join(["```console\n", *(f"{line}\n" for line in lines), "```"])

        return _BLOCK.sub(replay, text)

    def run(self, step: Example) -> list[str]:
        """The output of a command; of a background command, as many lines as the page shows."""
        command = _ID.sub(lambda m: self._ids.get(m[0], m[0]), step.command)
        command = _PORT.sub(lambda m: str(self._port(m[0])), command.replace(".venv/bin/", ""))
        if command.startswith("export "):
            variables = self._bash(f"{command}; env --null").stdout.split("\0")
            self._environment = dict(line.split("=", 1) for line in variables if line)
            return []
        if command.endswith(" &"):
            return self._ports_back(self._serve(command[:-2], max(1, len(step.output))))
        result = self._bash(command)
        assert result.returncode == 0 or "error: " in result.stdout, (command, result.stdout)
        lines = [line.rstrip() for line in result.stdout.splitlines()]
        return self._ports_back([line for line in lines if not _PROGRESS.match(line)])

    def end(self) -> None:
        """Ends the background processes."""
        for server in self._servers:
            server.terminate()
            server.communicate()

    def _bash(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def _serve(self, command: str, num_lines: int) -> list[str]:
        server = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._servers.append(server)
        assert server.stdout
        return [server.stdout.readline().rstrip() for _ in range(num_lines)]

    def _port(self, port: str) -> int:
        return self._ports.setdefault(port, free_port())

    def _ports_back(self, lines: list[str]) -> list[str]:
        names_by_port = {str(m): name for name, m in self._ports.items()}
        return [
            re.sub(r"\b\d{4,5}\b", lambda m: names_by_port.get(m[0], m[0]), line) for line in lines
        ]


def forms(text: str) -> list[str]:
    """The lines of a page without the parts that differ between runs."""
    return [form(line) for line in text.splitlines()]


def params(word: str) -> list[object]:
    """A test's parameters: the pages with a console block that contains a word."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.long] if page.stem in _LONG else [],
        )
        for page in pages
        if any(word in text for text in _BLOCK.findall(page.read_text()))
    ]


@contextmanager
def terminal(folder: Path, ports: Mapping[str, int] = {}) -> Iterator[Terminal]:
    """A terminal whose programs end with the block; a page's ports are replaced."""
    with TemporaryDirectory() as programs:
        new_terminal = Terminal(folder, Path(programs), ports)
        try:
            yield new_terminal
        finally:
            new_terminal.end()


def _write_program(path: Path, words: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
    path.chmod(0o755)


def main(folder: str, *names: str) -> None:
    """Each page starts with the store as the demo left it."""
    for name in names:
        with TemporaryDirectory() as page_folder, terminal(Path(page_folder)) as new_terminal:
            shutil.copytree(Path(folder) / STORE, Path(page_folder) / STORE)
            page = Path(name)
            page.write_text(new_terminal.play(page.read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
