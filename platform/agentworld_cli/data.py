"""Live episodes, recorded ones, and the data sets prepared from them."""

from typing import Annotated

import typer

from agentworld_cli import data_versions
from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step
from agentworld_cli.steps import add_steps, folder_help

app = typer.Typer(help="Record, import, prepare and compare data sets.", no_args_is_help=True)


@app.command()
def collect(
    *,
    domain: Annotated[
        str, typer.Option(help="The domain to record in; else the recipe's collect.domain.")
    ] = "",
    options: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An option of its environments; repeatable."
        ),
    ] = [],  # noqa: B006  typer copies it
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Record episodes of explorers in live environments, or import recorded ones."""
    from agentworld.steps.run import run_by_name
    from agentworld_cli.collect import recipe_for

    with recipe_for(recipe, domain, options) as path:
        show_step(run_by_name, "collect", path, store, as_json=as_json)


add_steps(app, "data", excluded=["collect", "traces"])


@app.command()
def traces(
    data: Annotated[str, typer.Option(metavar="FOLDER", help=folder_help("prepare"))],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Have a teacher write thoughts and observations for SFT, and a judge select them.

    Answers are kept in the store as they come: if the command is killed, repeat it, and it asks
    only for what is missing.
    """
    from agentworld.steps.run import run_by_name
    from agentworld_cli.yields import show_yields

    folder = show_step(run_by_name, "traces", recipe, store, data, as_json=as_json)
    if not as_json:
        show_yields(folder, store)


@app.command("import")
def import_recordings(
    source: Annotated[
        str, typer.Argument(help="A file, a folder, or an address such as s3://bucket/logs.")
    ],
    *,
    form: Annotated[
        str, typer.Option("--format", help="The format of the recordings; else it is detected.")
    ] = "",
    domain: Annotated[
        str,
        typer.Option(
            help="The domain of episodes without one; else the recipe's collect.domain, or text."
        ),
    ] = "",
    options: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the format; repeatable."),
    ] = [],  # noqa: B006  typer copies it
    strict: Annotated[
        bool, typer.Option(help="Stop at the first record that cannot be imported.")
    ] = False,
    explain: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Show how record number N would be imported, and import nothing.",
        ),
    ] = 0,
    recipe: RecipeName = "",
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Import recorded agent logs as episodes, and count what was left out."""
    from agentworld_cli import imports

    collect = imports.collect_recipe(
        recipe, source, form=form, domain=domain, options=options, strict=strict
    )
    if explain:
        imports.explain(collect, explain, as_json=as_json)
    else:
        imports.run(recipe, collect, store, as_json=as_json)


app.command("list")(data_versions.list_versions)
app.command()(data_versions.show)
app.command()(data_versions.diff)
app.command()(data_versions.inspect)
app.command()(data_versions.register)
