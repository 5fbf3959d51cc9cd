"""From a YAML file, or the name of a shipped one, to a recipe; a wrong key is named."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.recipes.tree import Recipe
from agentworld.records.base import Record, first_problem

_SHIPPED = Path(__file__).parent

_Tree = TypeVar("_Tree", bound=Record)


def recipe_path(name: str) -> Path:
    """The file of a recipe: a path, or the name of a shipped recipe such as `demo`."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else _SHIPPED / f"{name}.yaml"
    if not path.is_file():
        shipped = ", ".join(sorted(file.stem for file in _SHIPPED.glob("*.yaml")))
        raise InputError(f"there is no recipe {name!r}; give a YAML file or one of: {shipped}")
    return path


def load_recipe(path: Path) -> Recipe:
    """Reads a recipe; raises InputError naming the file, the key and the value."""
    return load_yaml(Recipe, path, "recipe")


def load_yaml(kind: type[_Tree], path: Path, noun: str) -> _Tree:
    """Reads what a person wrote; raises InputError naming the file, the key and the value."""
    try:
        tree = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InputError(f"cannot read the {noun} {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"the {noun} {path} is no YAML: {problem[:200]}") from error
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"the {noun} {path} is wrong at {first_problem(error)}") from error
