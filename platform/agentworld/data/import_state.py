"""The progress of an import, from which a killed import continues.

It is written after each chunk of trajectories, when everything up to it is on the disk. Anything
written later is discarded.
"""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import Digest, Record, digest_file
from agentworld.records.collected import Collected
from agentworld.records.quarantine import QUARANTINE

_FILE = "import.json"


class ImportState(Record):
    """The progress of an import of a source."""

    recipe: Digest
    content: Digest
    """The digest of the source's content."""
    has_marks: bool = False
    """Episodes are marked as held out."""
    file: int = 0
    """The number of the file to continue with."""
    records: int = 0
    """The number of finished records of that file."""
    quarantine_bytes: int = 0
    """The length of the quarantine."""
    collected: Collected = Collected(chunks={})
    """The manifest that the import would have if it ended here."""

    def save(self, out: Path) -> None:
        """Writes it beside the chunks."""
        self.write(out / _FILE)


def beginning_of(recipe: CollectRecipe, content: Digest, *, has_marks: bool = False) -> ImportState:
    """The state of an import that has read nothing yet.

    The digest of the recipe does not cover the address, which may contain a new signature.
    """
    shaping = recipe.model_copy(update={"trajectories": None, "num_workers": 1})
    return ImportState(recipe=shaping.digest, content=content, has_marks=has_marks)


def load_state(out: Path, recipe: CollectRecipe, content: Digest) -> ImportState:
    """The progress of an import of this source into a folder.

    The import starts again if the folder belongs to another import, if its chunks were changed, or
    if its quarantine is shorter than it was.
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
    """Removes the state of an import that has written its manifest."""
    (out / _FILE).unlink(missing_ok=True)
