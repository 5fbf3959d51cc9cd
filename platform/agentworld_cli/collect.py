"""Changes a recipe's collection by the command line's domain and options."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError
from yaml import YAMLError

from agentworld.errors import InputError
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.recipes.data import CollectRecipe
from agentworld.recipes.yaml_text import read_yaml, to_yaml

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@contextmanager
def recipe_for(recipe: str, domain: str, options: Sequence[str]) -> Iterator[str]:
    """The recipe, or a temporary file for the block if another domain is given.

    The recipe's options are kept if it has the same domain.
    """
    if not (domain or options):
        yield recipe
        return
    whole = load_recipe(recipe_path(recipe))
    is_same = domain in ("", whole.collect.domain)
    inherited = whole.collect.options if is_same else {}
    update = {
        "domain": domain or whole.collect.domain,
        "mixture": {} if domain else whole.collect.mixture,
        "options": {**inherited, **read_options(options)},
    }
    with recipe_file(whole, whole.collect.model_copy(update=update)) as path:
        yield path


@contextmanager
def recipe_file(whole: Recipe, collect: CollectRecipe) -> Iterator[str]:
    """A temporary file with a recipe with this collection."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recipe.yaml"
        path.write_text(to_yaml(whole.model_copy(update={"collect": collect})))
        yield str(path)


def read_options(texts: Sequence[str]) -> dict[str, JsonValue]:
    """Parses options of the form `--set NAME=VALUE`; raises InputError for any other text."""
    return dict(map(_option, texts))


def _option(text: str) -> tuple[str, JsonValue]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InputError(f"--set takes NAME=VALUE, not {text!r}")
    return name, _value_of(value)


def _value_of(text: str) -> JsonValue:
    """Parses the value as in a recipe; text that only resembles a number, such as `1e-3`, stays a
    text.
    """
    try:
        value = _JSON.validate_python(read_yaml(text).value)
    except (YAMLError, ValidationError):  # YAML has values that JSON lacks
        return text
    match value:
        case bool():
            return value
        # An option of type number parses a text, and one of type text gets it unchanged.
        case int() | float() if isfinite(value) and str(value) != text:
            return text
    return value
