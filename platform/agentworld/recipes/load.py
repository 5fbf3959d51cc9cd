"""Loads a recipe from a YAML file, or by the name of a shipped one; reports all its problems."""

from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from yaml import YAMLError

from agentworld.errors import InputError, InvalidFile
from agentworld.recipes.problems import Problem, all_problems
from agentworld.recipes.tree import Recipe
from agentworld.recipes.yaml_text import Document, read_yaml
from agentworld.records.base import Record

_SHIPPED = Path(__file__).parent

_Tree = TypeVar("_Tree", bound=Record)


def shipped_recipes() -> dict[str, Path]:
    """The file of each shipped recipe, by its name."""
    return {file.stem: file for file in sorted(_SHIPPED.glob("*.yaml"))}


def recipe_summary(path: Path) -> str:
    """The first sentence of a shipped recipe's comment."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    return " ".join(line.lstrip("# ") for line in lines).partition(". ")[0].rstrip(".")


def recipe_path(name: str) -> Path:
    """The file of a recipe: a path, or the name of a shipped recipe such as `demo`."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else _SHIPPED / f"{name}.yaml"
    if not path.is_file():
        names = ", ".join(shipped_recipes())
        raise InputError(f"there is no recipe {name!r}; give a YAML file or one of: {names}")
    return path


def load_recipe(path: Path) -> Recipe:
    """Reads a recipe; raises InvalidFile with a sentence for each field that is wrong."""
    return load_yaml(Recipe, path, "recipe")


def load_yaml(kind: type[_Tree], path: Path, noun: str) -> _Tree:
    """Reads a YAML file; raises InvalidFile with a sentence for each wrong field, or InputError for
    a file that cannot be read or is not YAML.
    """
    record, problems = _validate(kind, path, noun)
    if problems or record is None:
        raise InvalidFile([_sentence(problem, path, noun) for problem in problems])
    return record


def check_recipe(path: Path) -> list[Problem]:
    """All problems of a recipe, by line; raises InputError for a file that is not YAML."""
    return _validate(Recipe, path, "recipe")[1]


def _validate(kind: type[_Tree], path: Path, noun: str) -> tuple[_Tree | None, list[Problem]]:
    document = _read(path, noun)
    record, problems = None, document.repeated
    try:
        record = kind.model_validate(document.value)
    except ValidationError as error:
        problems = problems + all_problems(kind, error, document.root)
    return record, sorted(problems, key=lambda problem: problem.line or 0)


def _sentence(problem: Problem, path: Path, noun: str) -> str:
    location = f"line {problem.line} of the {noun}" if problem.line else f"the {noun}"
    return f"{location} {path} is wrong at {problem.field}: {problem.message}"


def _read(path: Path, noun: str) -> Document:
    try:
        return read_yaml(path.read_text())
    except OSError as error:
        raise InputError(f"cannot read the {noun} {path}: {error.strerror}") from error
    except (YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"the {noun} {path} is not YAML: {problem[:200]}") from error
