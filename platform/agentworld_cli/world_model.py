"""World models: versions in the registry."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_STORE, Json, Store, brief, console, show_json
from agentworld_cli.steps import add_steps

app = typer.Typer(help="Register, list and show versions of world models.", no_args_is_help=True)
add_steps(app, "world-model")


@app.command("list")
def list_versions(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the registered versions of world models."""
    from agentworld.operations.registry import check_store, open_registry

    check_store(Path(store))
    versions = open_registry(Path(store)).versions(kind="world-model")
    if as_json:
        show_json(versions)
        return
    for version in versions:
        artifact = version.tags.get("artifact", "")
        line = f"{version.ref!s:<32} {version.at:%Y-%m-%d %H:%M}  {artifact}"
        console.print(line, markup=False, soft_wrap=True)


@app.command()
def show(
    version: Annotated[
        str, typer.Argument(metavar="NAME@VERSION", help="A registered world model.")
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show the stages of a version, and how the last one was evaluated."""
    from agentworld.lineage.base import VersionRef
    from agentworld.operations.registry import check_store, open_registry

    ref = VersionRef.parse(version)
    check_store(Path(store))
    model = open_registry(Path(store)).world_model(ref)
    if as_json:
        show_json(model)
        return
    console.print(f"{version}, domain {', '.join(model.domains)}", markup=False)
    for stage in model.stages:
        parents = ", ".join(map(brief, stage.parents)) or "nothing"
        origin = f"from {parents}, data {brief(stage.data)}"
        console.print(f"  {stage.stage:<4} {brief(stage.artifact)}  {origin}", soft_wrap=True)
        for corpus, use in stage.corpora.items():
            line = f"       corpus {corpus} {brief(use.content)}, {use.share:.1%} of the tokens"
            console.print(line, markup=False, soft_wrap=True)
    console.print(f"  report {brief(model.report)}", markup=False)
    for line in _figures(model.metrics, model.stages[-1].stage):
        console.print(f"    {line}", markup=False, soft_wrap=True)


def _figures(metrics: Mapping[str, float], stage: str) -> Iterator[str]:
    """One line for a figure of all turns, and one for all groups of a kind."""
    measures = {
        name.removeprefix(f"{stage}."): value
        for name, value in sorted(metrics.items())
        if name.startswith(f"{stage}.")
    }
    groups: dict[str, list[str]] = {}
    for name, value in measures.items():
        group, dot, inside = name.partition(".")
        if dot:
            label = inside.removesuffix(".exact_match")
            groups.setdefault(group, []).append(f"{label} {value:.3f}")
        else:
            yield f"{name:<30} {value:.3f}"
    for group, values in groups.items():
        yield f"exact_match {group}: {', '.join(values)}"
