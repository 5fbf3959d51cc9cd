"""Tracks what the earlier turns of an episode changed, by their commands and exit statuses.

Paths are absolute. Only commands that succeeded change anything here.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field

from agentworld.domains.sandbox import HOME
from agentworld.domains.shell.grammar import Command, operands_of
from agentworld.domains.start_files import parse_files


@dataclass
class Effects:
    """The existing paths, and what earlier turns created, changed or removed."""

    paths: set[str]
    """Existing files and folders."""
    folders: set[str]
    cwd: str = HOME
    """The current folder."""
    num_turns: int = 0
    contents: set[str] = field(default_factory=set)
    """Files with another content than at the start."""
    presences: set[str] = field(default_factory=set)
    """Paths that were created or removed."""
    listings: set[str] = field(default_factory=set)
    """Folders in which a path was created or removed."""
    variables: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, initial_state: str) -> "Effects":
        """The effects before the first turn."""
        effects = cls(paths={HOME}, folders={HOME})
        for path in map(effects.path, parse_files(initial_state)):
            effects.paths.update(_parents(path), [path])
            effects.folders.update(_parents(path))
        return effects

    @property
    def is_elsewhere(self) -> bool:
        """Whether the current folder is not the one of the start."""
        return self.cwd != HOME

    def path(self, name: str) -> str:
        """An operand as an absolute path."""
        if name.startswith("~"):
            name = HOME + name[1:]
        elif "/" not in name and not name.startswith("."):
            return f"{self.cwd}/{name}"
        return posixpath.normpath(posixpath.join(self.cwd, name))

    def enter(self, folder: str) -> None:
        """Sets the current folder to that of a prompt line."""
        self.cwd = self.path(folder)

    def apply(self, command: Command) -> None:
        """Records the changes of a command that succeeded."""
        if command.target:
            self._write(self.path(command.target))
        change = _CHANGES.get(command.words[0])
        if change:
            change(self, operands_of(command))

    def _write(self, path: str) -> None:
        self.contents.add(path)
        if path not in self.paths:
            self.paths.add(path)
            self._record_change(path)

    def _record_change(self, path: str) -> None:
        self.contents.add(path)
        self.presences.add(path)
        self.listings.add(posixpath.dirname(path))

    def _make_files(self, names: list[str]) -> None:
        for path in map(self.path, names):
            if path not in self.paths:
                self._write(path)

    def _make_folders(self, names: list[str]) -> None:
        for path in map(self.path, names):
            for folder in [*_parents(path), path]:
                if folder not in self.paths:
                    self._write(folder)
                    self.folders.add(folder)

    def _remove(self, names: list[str]) -> None:
        for path in map(self.path, names):
            for descendant in self._with_all_below(path):
                self._record_change(descendant)
                self.paths.discard(descendant)
                self.folders.discard(descendant)

    def _copy(self, names: list[str]) -> None:
        if len(names) < 2:
            return
        *old_paths, new = map(self.path, names)
        for old in old_paths:
            top = f"{new}/{posixpath.basename(old)}" if new in self.folders else new
            for path in self._with_all_below(old):
                self._write(top + path.removeprefix(old))
                if path in self.folders:
                    self.folders.add(top + path.removeprefix(old))

    def _move(self, names: list[str]) -> None:
        self._copy(names)
        self._remove(names[:-1])

    def _set(self, assignments: list[str]) -> None:
        self.variables.update(text.partition("=")[0] for text in assignments)

    def _with_all_below(self, path: str) -> list[str]:
        return [
            candidate
            for candidate in self.paths
            if candidate == path or candidate.startswith(f"{path}/")
        ]


def _parents(path: str) -> list[str]:
    """The folders above a path, below the home."""
    parts = path.removeprefix(f"{HOME}/").split("/")
    return [f"{HOME}/" + "/".join(parts[:end]) for end in range(1, len(parts))]


_CHANGES: dict[str, Callable[[Effects, list[str]], None]] = {
    "touch": Effects._make_files,
    "mkdir": Effects._make_folders,
    "rm": Effects._remove,
    "rmdir": Effects._remove,
    "cp": Effects._copy,
    "mv": Effects._move,
    "export": Effects._set,
}
