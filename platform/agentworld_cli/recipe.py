"""Recipes: the settings of a job's collection, training, evaluation and serving."""

import json
from typing import Annotated

import typer

from agentworld_cli.show import Json, console, plain, show_json

app = typer.Typer(
    help="List, show and check recipes: the settings of a job, in YAML.", no_args_is_help=True
)

_Recipe = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME", help="A recipe's file, or a name that `recipe list` prints."
    ),
]
_INVALID = 2


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the shipped recipes; copy the file of one to start your own."""
    from agentworld.recipes.load import recipe_summary, shipped_recipes

    rows = [
        {"name": name, "about": recipe_summary(path), "file": str(path)}
        for name, path in shipped_recipes().items()
    ]
    if as_json:
        show_json(rows)
        return
    for row in rows:
        console.print(f"{row['name']:<12} {row['about']}", soft_wrap=True, markup=False)
        console.print(f"{'':<12} {row['file']}", soft_wrap=True, markup=False)


@app.command()
def show(recipe: _Recipe, as_json: Json = False) -> None:
    """Print a recipe as YAML with every default filled in."""
    from agentworld.recipes import load_recipe, recipe_path
    from agentworld.recipes.yaml_text import to_yaml

    resolved = load_recipe(recipe_path(recipe))
    if as_json:
        show_json(resolved)
    else:
        print(to_yaml(resolved), end="")


@app.command()
def fields(
    section: Annotated[
        str,
        typer.Argument(
            metavar="[SECTION]", help="A section such as collect or agent.rl; else all."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Print every field of a recipe: type, default, unit and meaning."""
    from agentworld.errors import InputError
    from agentworld.recipes import Recipe
    from agentworld.records.fields import describe_fields

    rows = [
        field
        for field in describe_fields(Recipe)
        if not section
        or field.name == section
        or field.name.startswith((f"{section}.", f"{section}["))
    ]
    if not rows:
        sections = ", ".join(Recipe.model_fields)
        raise InputError(f"a recipe has no section {section!r}; give one of: {sections}")
    if as_json:
        show_json(rows)
        return
    for row in rows:
        value = "required" if row.required else f"default {json.dumps(row.default)}"
        unit = f" ({row.unit})" if row.unit else ""
        console.print(f"{row.name}: {row.type}{unit}, {value}", soft_wrap=True, markup=False)
        console.print(f"    {row.meaning}", soft_wrap=True, markup=False)


@app.command()
def check(recipe: _Recipe, as_json: Json = False) -> None:
    """Check a recipe and print every problem with its line.

    Exits with 2 if there is a problem.
    """
    from agentworld.recipes import load_recipe, recipe_path
    from agentworld.recipes.load import check_recipe

    path = recipe_path(recipe)
    if not as_json:
        load_recipe(path)
        print(plain(f"{path} is a valid recipe"))
        return
    problems = check_recipe(path)
    show_json({"valid": not problems, "problems": [problem._asdict() for problem in problems]})
    if problems:
        raise typer.Exit(_INVALID)
