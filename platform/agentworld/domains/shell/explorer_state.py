"""The files and words that a shell explorer remembers, so that its commands name them again.

Only the choice of actions in data collection uses it; no reward and no observation depends on it.
"""

import random
from dataclasses import dataclass, field

from agentworld.domains.words import EpisodeWords


@dataclass
class Folder:
    """The names in one folder that the start or an earlier command named."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


@dataclass
class ExplorerState:
    """Folders by path, the assumed current folder, words and variables."""

    rng: random.Random
    words: EpisodeWords
    cwd: str = ""
    folders: dict[str, Folder] = field(default_factory=lambda: {"": Folder()})
    variables: list[str] = field(default_factory=list)
    recent_words: list[str] = field(default_factory=list)
    """Words that files contain."""

    def word(self) -> str:
        """Mostly a word that a file contains, otherwise any word."""
        reuse = self.recent_words and self.rng.random() < 0.75
        return self.rng.choice(self.recent_words if reuse else self.words.contents)

    def name(self) -> str:
        """A word for a file or a folder."""
        return self.rng.choice(self.words.names)

    def phrase(self) -> str:
        """One to three words, mostly new ones."""
        words = self.rng.choices(self.words.contents, k=self.rng.choice((1, 1, 2, 2, 3)))
        self.recent_words += words
        return " ".join(words)

    def file(self) -> str:
        """A file of the current folder, mostly a recent one; sometimes a new name."""
        files = self.folders[self.cwd].files
        if not files or self.rng.random() < 0.1:
            return self.new_file()
        return self.rng.choice(files[-2:] if self.rng.random() < 0.8 else files)

    def folder(self) -> str:
        """Mostly a folder of the current folder, otherwise a name that may not exist."""
        folders = self.folders[self.cwd].folders
        return self.rng.choice(folders) if folders and self.rng.random() < 0.9 else self.name()

    def new_file(self) -> str:
        """A file name from the episode's names."""
        return f"{self.name()}.txt"

    def add_file(self, name: str) -> None:
        """Remembers a file of the current folder, or `folder/name`."""
        folder, _, name = name.rpartition("/")
        files = self._folder_at(folder).files
        if name not in files:
            files.append(name)

    def drop_file(self, name: str) -> None:
        """Forgets a file of the current folder."""
        files = self.folders[self.cwd].files
        if name in files:
            files.remove(name)

    def add_folder(self, name: str) -> None:
        """Remembers a folder in the current folder."""
        self._folder_at(name)

    def enter(self, name: str) -> None:
        """Changes the current folder like `cd`, if the folder is known."""
        if name == "..":
            self.cwd = self.cwd.rpartition("/")[0]
        elif name in self.folders[self.cwd].folders:
            self.cwd = self._path(name)

    def _path(self, name: str) -> str:
        return f"{self.cwd}/{name}" if name else self.cwd

    def _folder_at(self, name: str) -> Folder:
        if name and name not in self.folders[self.cwd].folders:
            self.folders[self.cwd].folders.append(name)
        return self.folders.setdefault(self._path(name), Folder())
