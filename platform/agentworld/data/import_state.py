"""How far an import is, so that one that was killed goes on.

It is written after each chunk of trajectories: everything before it is on the disk, and nothing
that came after it counts.
"""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import Digest, Record, digest_file
from agentworld.records.collected import Collected
from agentworld.records.quarantine import QUARANTINE

_FILE = "import.json"


class ImportState(Record):
    """What was imported of a source."""

    recipe: Digest
    content: Digest
    """Of the source."""
    has_marks: bool = False
    """Episodes are marked as held out."""
    file: int = 0
    """The number of the file that comes next, or goes on."""
    records: int = 0
    """How many of its records are done."""
    quarantine_bytes: int = 0
    """How long the quarantine was."""
    collected: Collected = Collected(chunks={})
    """All that was done, as the manifest of an import that ended here."""

    def save(self, out: Path) -> None:
        """Writes it beside the chunks."""
        self.write(out / _FILE)


def beginning_of(recipe: CollectRecipe, content: Digest, *, has_marks: bool = False) -> ImportState:
    """The state of an import that has read nothing yet.

    Its digest of the recipe leaves out what does not change the result: an address may be signed
    again.
    """
    shaping = recipe.model_copy(update={"trajectories": None, "num_workers": 1})
    return ImportState(recipe=shaping.digest, content=content, has_marks=has_marks)


def load_state(out: Path, recipe: CollectRecipe, content: Digest) -> ImportState:
    """How far the import of a source of this content into a folder is.

    At its beginning, where the folder is of another import, its chunks are not those that were
    written, or its quarantine is shorter than it was.
    """
    beginning = beginning_of(recipe, content)
    try:
        state = ImportState.read(out / _FILE)
    except InputError:
        return beginning
    chunks = state.collected.chunks.items()
    is_whole = all((out / name).is_file() and digest_file(out / name) == d for name, d in chunks)
    is_whole = is_whole and _size_of(out / QUARANTINE) >= state.quarantine_bytes
    is_same = (state.recipe, state.content) == (beginning.recipe, beginning.content)
    return state if is_same and is_whole else beginning


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def forget_state(out: Path) -> None:
    """An import that wrote its manifest needs it no more."""
    (out / _FILE).unlink(missing_ok=True)
