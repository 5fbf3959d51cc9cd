"""Where MLflow keeps what it tells of a version, and where a store has its validations."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.step import StepReceipt


class Place(NamedTuple):
    """A registry on a database file, with a version of each name."""

    folder: Path

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount > 0

    def row(self, statement: str, *values: object) -> tuple[object, ...]:
        """The first that it finds."""
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            found: tuple[object, ...] = database.execute(statement, values).fetchone()
            return found

    def column(self, name: str, column: str) -> str:
        return str(self.row(f"SELECT {column} FROM model_versions WHERE name = ?", name)[0])

    def model(self, name: str) -> str:
        """The id of its logged model."""
        return self.column(name, "source").removeprefix("models:/")

    def tag(self, name: str, chance: random.Random) -> tuple[str, str]:
        wanted = "SELECT key, value FROM model_version_tags WHERE name = ? AND value <> ''"
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            return chance.choice(database.execute(f"{wanted} ORDER BY 1", (name,)).fetchall())

    def file(self, name: str, of: str) -> Path:
        if of == "model.safetensors":
            return Path(self.column(name, "storage_location").removeprefix("file://")) / of
        return self.of_run(self.column(name, "run_id")) / of

    def of_run(self, run: str) -> Path:
        """The folder of its files."""
        return self.folder / "mlflow-artifacts" / run / "artifacts"

    def artifact(self, name: str) -> str:
        """The weights that were registered by this name."""
        return ArtifactManifest.of(self.folder / name).digest

    def steps_of(self, name: str) -> list[str]:
        """The folders of its validations, by their names."""
        folders = sorted((self.folder / "steps/validate").iterdir())
        receipts = [(each.name, StepReceipt.read(each / "receipt.json")) for each in folders]
        artifact = self.artifact(name)
        return [step for step, receipt in receipts if receipt.inputs["agent"] == artifact]


Change = Callable[[Place, str, str, random.Random], object]
"""Done to the version of one name, with what another has at hand."""
