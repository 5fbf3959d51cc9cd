"""Runs a guide as a program: its blocks are its files, and its commands are run in order."""

import io
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import chain
from pathlib import Path
from string import Template
from textwrap import dedent
from typing import Any

import yaml
from typer.testing import CliRunner

from agentworld_cli.main import app

_LINE = re.compile(
    r"(?:(?P<name>\w+)=\$\()?(?P<words>[^|)&]+?)(?P<head> \| head -1)?\)?(?P<at> &)?"
)


FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
"""A block of a page, also in a list: its indentation, its language, its text."""


def fences(text: str) -> list[tuple[str, str]]:
    """The language and the text of each block of a page."""
    return [(language, dedent(block)) for _, language, block in FENCE.findall(text)]


def blocks(text: str, language: str) -> list[str]:
    """The blocks of a guide in this language."""
    return [block for block_language, block in fences(text) if block_language == language]


def yamls(text: str) -> list[Any]:
    """The YAML documents of a guide; a block can have several."""
    return list(chain.from_iterable(map(yaml.safe_load_all, blocks(text, "yaml"))))


class Shell:
    """Runs a guide's commands in this process; commands in the background get their own process."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        """The values of the commands' variables."""
        self.said: dict[str, str] = {}
        """The output of each command, by its first two words."""
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(self, line: str) -> None:
        """Runs one line of a guide."""
        if line.startswith("curl "):
            subprocess.run(shlex.split(line), check=True, stdout=subprocess.DEVNULL)
            return
        match = _LINE.fullmatch(line)
        assert match, line
        words = shlex.split(Template(match["words"]).substitute(self.values))
        if match["at"]:
            self._serve(words)
            return
        text = _python(words) if words[0] == "python" else _agentworld(words)
        self.said[" ".join(words[1:3])] = text
        if match["name"]:
            self.values[match["name"]] = text.splitlines()[0 if match["head"] else -1]

    def _serve(self, words: list[str]) -> None:
        command = [sys.executable, "-m", "agentworld_cli.main", *words[1:]]
        self._servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    def end(self) -> None:
        """Ends the background processes."""
        for server in self._servers:
            server.terminate()
            server.wait()


@contextmanager
def shell() -> Iterator[Shell]:
    """A shell whose processes end with the block."""
    new_shell = Shell()
    try:
        yield new_shell
    finally:
        new_shell.end()


def _agentworld(words: list[str]) -> str:
    assert words[0] == "agentworld", words
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout.strip()


def _python(words: list[str]) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        runpy.run_path(str(Path(words[1])), run_name="__main__")
    return output.getvalue().strip()
