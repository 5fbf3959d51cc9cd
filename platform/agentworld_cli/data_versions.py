"""The data sets of a store: list, show, compare, inspect and register them."""

from pathlib import Path
from typing import Annotated

import typer

from agentworld_cli.show import (
    DEFAULT_STORE,
    ExistingStore,
    Json,
    Store,
    brief,
    plain,
    show_json,
    to_words,
)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A data set: its folder, its digest or the start of its digest."
    ),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")]


def list_versions(store: ExistingStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the data sets that a store prepared, the newest first.

    In the console: /datasets.
    """
    from agentworld.storage.datasets import list_datasets

    datasets = list_datasets(Path(store))
    if as_json:
        show_json(
            [
                {
                    "digest": entry.digest,
                    "folder": str(entry.folder),
                    "domains": entry.dataset.domains,
                    "num_trajectories": entry.dataset.num_trajectories,
                    "num_samples": {k: v.num_samples for k, v in entry.dataset.pools.items()},
                }
                for entry in datasets
            ]
        )
        return
    for entry in datasets:
        domains = ", ".join(entry.dataset.domains)
        print(
            f"{brief(entry.digest)}  {entry.dataset.num_trajectories:>9,} trajectories"
            f"  {plain(domains)}  {plain(str(entry.folder))}"
        )


def show(data: Data, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print the manifest of a data set: sources, counts, filters, recipe."""
    from agentworld.records.leaves import json_leaves
    from agentworld.storage.datasets import find_dataset

    dataset = find_dataset(data, Path(store)).dataset
    if as_json:
        show_json(dataset)
        return
    fields = dataset.model_dump(mode="json")
    parents = {str(number): parent for number, parent in enumerate(fields.pop("parents"))}
    for name, value in json_leaves({"parents": parents, **fields}):
        print(f"{plain(name):<32} {to_words(value)}")


def diff(first: Data, second: Data, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Show how two data sets differ: recipe, parents, counts, trajectories."""
    from agentworld.reports.dataset_diff import diff_datasets
    from agentworld.storage.datasets import find_dataset

    one, other = (find_dataset(name, Path(store)) for name in (first, second))
    difference = diff_datasets(one, other)
    if as_json:
        show_json(difference)
        return
    print(f"{brief(difference.first)} and {brief(difference.second)}")
    for item in difference.differences:
        print(f"  {plain(item.what):<40} {_value(item.first)} -> {_value(item.second)}")
    for number, place in (
        (difference.num_only_first, "only in the first"),
        (difference.num_only_second, "only in the second"),
        (difference.num_both, "in both"),
    ):
        print(f"  {number:>10,}  trajectories {place}")


def inspect(
    data: Data, out: Out = Path("dataset.html"), store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """Write an HTML page of a data set: counts, lengths, licences, example turns, quarantine."""
    from agentworld.records.file import write_whole
    from agentworld.reports.dataset import render_dataset, view_dataset
    from agentworld.storage.datasets import find_dataset

    stored = find_dataset(data, Path(store))
    view = view_dataset(stored)
    write_whole(out, render_dataset(view).encode())
    if as_json:
        flow = {row.label: row.num for row in view.flow.rows}
        quarantine = [row._asdict() for row in view.quarantine]
        lost = {table.title: {row.label: row.num for row in table.rows} for table in view.losses}
        show_json(
            {
                "page": str(out),
                "digest": view.digest,
                "flow": flow,
                "lost": lost,
                "quarantine": quarantine,
            }
        )
    else:
        print(plain(str(out)))


def register(data: Data, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Register a data set as a run in MLflow; its first training registers it too."""
    from agentworld.operations.registry import open_registry
    from agentworld.storage.datasets import find_dataset

    stored = find_dataset(data, Path(store))
    run = open_registry(Path(store)).register_dataset(stored.dataset)
    if as_json:
        show_json({"digest": stored.digest, "run": run})
    else:
        print(f"{brief(stored.digest)} is run {plain(run)}")


def _value(value: object) -> str:
    """Shortens a digest; other values as Python literals; a dash for null."""
    if isinstance(value, str) and value.startswith("sha256:"):
        return brief(value)
    return to_words(value)
