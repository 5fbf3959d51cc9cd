"""MLflow's databases, copied from one that each process creates once.

Creating an empty one runs all of MLflow's migrations, which takes seconds.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry

_DATABASE = "mlflow.db"


def database(folder: Path) -> str:
    """The address of the database in a folder, which is created if it is missing."""
    file = folder.resolve() / _DATABASE
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_empty())
    return f"sqlite:///{file}"


def registry(store: Path) -> "MlflowRegistry":
    """A store's own registry, which is created if it is missing."""
    from agentworld.operations.registry import open_registry

    database(store)
    return open_registry(store)


@cache
def _empty() -> bytes:
    from agentworld.lineage.mlflow import MlflowRegistry

    with TemporaryDirectory() as folder:
        file = Path(folder) / _DATABASE
        MlflowRegistry(f"sqlite:///{file}").versions()
        return file.read_bytes()
