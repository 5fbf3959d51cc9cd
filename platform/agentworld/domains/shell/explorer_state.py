"""What an explorer knows of the files that it met: enough to name them again, and no more.

It chooses actions while data are collected. It rewards nothing and answers nothing.
"""

import random
from dataclasses import dataclass, field

from agentworld.domains.words import EpisodeWords


@dataclass
class Folder:
    """The names in one folder that the explorer has made or was told of."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


@dataclass
class ExplorerState:
    """Folders by path, the folder the explorer thinks it is in, words and variables."""

    rng: random.Random
    words: EpisodeWords
    cwd: str = ""
    folders: dict[str, Folder] = field(default_factory=lambda: {"": Folder()})
    variables: list[str] = field(default_factory=list)
    recent_words: list[str] = field(default_factory=list)
    """Words that files were seen to hold."""

    def word(self) -> str:
        """A word that some file holds, mostly; else any."""
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
        """A file believed to be here, mostly one met lately; else a name that may not exist."""
        files = self.folders[self.cwd].files
        if not files or self.rng.random() < 0.1:
            return self.new_file()
        return self.rng.choice(files[-2:] if self.rng.random() < 0.8 else files)

    def folder(self) -> str:
        """A folder believed to be here, mostly; else a name that may not exist."""
        folders = self.folders[self.cwd].folders
        return self.rng.choice(folders) if folders and self.rng.random() < 0.9 else self.name()

    def new_file(self) -> str:
        """A file name from the episode's names."""
        return f"{self.name()}.txt"

    def add_file(self, name: str) -> None:
        """Remembers a file, here or at `folder/name`."""
        folder, _, name = name.rpartition("/")
        files = self._folder_at(folder).files
        if name not in files:
            files.append(name)

    def drop_file(self, name: str) -> None:
        """Forgets a file that is here."""
        files = self.folders[self.cwd].files
        if name in files:
            files.remove(name)

    def add_folder(self, name: str) -> None:
        """Remembers a folder here."""
        self._folder_at(name)

    def enter(self, name: str) -> None:
        """Follows `cd`, if the folder is believed to be there."""
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
