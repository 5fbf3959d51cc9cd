"""One registered version under attack: the locations of its data in MLflow and in a store."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.step import StepReceipt


class Victim(NamedTuple):
    """The version of one name, in a registry on a database file."""

    folder: Path
    chance: random.Random
    name: str
    other_name: str

    @property
    def other(self) -> "Victim":
        """Another version, as a source of other values."""
        return self._replace(name=self.other_name, other_name=self.name)

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount > 0

    def row(self, statement: str, *values: object) -> tuple[object, ...]:
        """The first result."""
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            row: tuple[object, ...] = database.execute(statement, values).fetchone()
            return row

    def column(self, column: str) -> str:
        value = self.row(f"SELECT {column} FROM model_versions WHERE name = ?", self.name)
        return str(value[0])

    @property
    def run(self) -> str:
        """The run that registered the version."""
        return self.column("run_id")

    @property
    def model(self) -> str:
        """The id of its logged model."""
        return self.column("source").removeprefix("models:/")

    def new_id(self) -> str:
        return self.chance.randbytes(16).hex()

    def tag(self) -> tuple[str, str]:
        query = "SELECT key, value FROM model_version_tags WHERE name = ? AND value <> ''"
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            rows = database.execute(f"{query} ORDER BY 1", (self.name,)).fetchall()
        return self.chance.choice(rows)

    def file(self, name: str) -> Path:
        if name == "model.safetensors":
            return Path(self.column("storage_location").removeprefix("file://")) / name
        return self.files(self.run) / name

    def files(self, run: str) -> Path:
        """The folder of a run's files."""
        return self.folder / "mlflow-artifacts" / run / "artifacts"

    @property
    def artifact(self) -> str:
        """The weights that were registered under this name."""
        return ArtifactManifest.of(self.folder / self.name).digest

    def steps(self) -> list[str]:
        """The folders of its validations, by name."""
        folders = sorted((self.folder / "steps/validate").iterdir())
        receipts = [(folder.name, StepReceipt.read(folder / "receipt.json")) for folder in folders]
        artifact = self.artifact
        return [step for step, receipt in receipts if receipt.inputs["agent"] == artifact]


Change = Callable[[Victim], object]


def statement(template: str, **generators: Callable[[random.Random], object]) -> Change:
    """Runs SQL with the victim's `:name`, `:run` and `:model`, a new `:id`, and random values."""

    def change(victim: Victim) -> None:
        values: dict[str, object] = {
            "name": victim.name,
            "run": victim.run,
            "model": victim.model,
            "other_run": victim.other.run,
            "id": victim.new_id(),
        }
        values |= {name: draw(victim.chance) for name, draw in generators.items()}
        with closing(sqlite3.connect(victim.folder / "mlflow.db")) as database, database:
            assert database.execute(template, values).rowcount > 0

    return change
