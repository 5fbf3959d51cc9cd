"""The page of a data set: how many episodes passed the filters, and examples from the pools."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from agentworld.data.imported import NO_TURN
from agentworld.data.secret_search import redact_text
from agentworld.errors import AgentworldError
from agentworld.records.dataset import DataSet, Parent
from agentworld.records.leaves import json_leaves
from agentworld.records.sample import Pool, Sample
from agentworld.reports.templates import FOLDER, templates
from agentworld.storage.datasets import StoredDataSet

STYLE = FOLDER / "dataset.css"
"""The styles of `dataset_body.html`; the page defines the colours."""
MOST_TURNS = 8
MOST_LETTERS = 2_000
MOST_QUARANTINED = 50
_EXAMPLES_PER_POOL = 2
_MOST_ROWS = 40
_BY_PREFIX = {
    "masked ": ("Masked", "turns"),
    "redacted ": ("Replaced by placeholders", "secrets"),
}
"""The other counts, by prefix of their names."""
_BROKEN = "episode that broke its sandbox"
_FIELD = re.compile(r"([\w.\[\]-]{1,80}): (.+)", re.DOTALL)


class Count(NamedTuple):
    """A row of a table, with a bar."""

    label: str
    num: int
    share: float
    """The bar's share of the full width, 0 to 1."""


class Counts(NamedTuple):
    """A table of counts."""

    title: str
    unit: str
    rows: list[Count]
    num_omitted: int = 0
    """The number of rows that are left out, which have the smallest counts."""


class Example(NamedTuple):
    """A sample of a pool."""

    pool: Pool
    sample: Sample


class QuarantineRow(NamedTuple):
    """A record that could not be imported."""

    file: str
    place: str
    field: str
    """Empty if the whole record is wrong."""
    reason: str


class DataSetView(NamedTuple):
    """Everything that the page shows."""

    digest: str
    dataset: DataSet
    flow: Counts
    losses: list[Counts]
    """Removed records by reason: at the import, by the filters, and masked turns."""
    contents: list[Counts]
    lengths: list[Counts]
    recipe: dict[str, JsonValue]
    """The recipe's fields by path."""
    examples: list[Example]
    problem: str
    """Why there are no examples; empty if there are some."""
    quarantine: list[QuarantineRow]


def view_dataset(stored: StoredDataSet) -> DataSetView:
    """The view of a data set; pools and quarantine may be in another place."""
    dataset = stored.dataset
    examples, problem = _examples(stored)
    return DataSetView(
        digest=stored.digest,
        dataset=dataset,
        flow=_flow(dataset),
        losses=_losses(dataset),
        contents=_contents(dataset),
        lengths=_lengths(dataset),
        recipe=dict(json_leaves(dataset.recipe)),
        examples=examples,
        problem=problem,
        quarantine=list(islice(_quarantine(stored), MOST_QUARANTINED)),
    )


def render_dataset(view: DataSetView) -> str:
    """The page as one HTML file."""
    return templates().get_template("dataset_page.html").render(page_values(view))


def page_values(view: DataSetView) -> dict[str, object]:
    """The variables of the template `dataset_body.html`."""
    return {"view": view, "most_turns": MOST_TURNS, "most_letters": MOST_LETTERS}


def _flow(dataset: DataSet) -> Counts:
    lost = sum(map(_num_lost, dataset.parents))
    rows = {
        "recorded": dataset.num_read + lost,
        "imported": dataset.num_read,
        "passed the filters": dataset.num_trajectories,
        **{f"pool {name}": file.num_samples for name, file in dataset.pools.items()},
    }
    return _counts("From recordings to pools", "trajectories and samples", rows, is_sorted=True)


def _num_lost(parent: Parent) -> int:
    """The recorded episodes that are in no chunk."""
    return parent.num_quarantined + parent.notes.get(NO_TURN, 0) + parent.num_broken


def _losses(dataset: DataSet) -> list[Counts]:
    notes = Counter[str]()
    for parent in dataset.parents:
        notes.update({**parent.notes, _BROKEN: parent.num_broken})
    filtered = dict(dataset.filtered)
    others = []
    for prefix, (title, unit) in _BY_PREFIX.items():
        names = [name for name in filtered if name.startswith(prefix)]
        others.append(_counts(title, unit, {name: filtered.pop(name) for name in names}))
    tables = [
        _counts("Put into quarantine by the import", "records", dataset.quarantined),
        _counts("Left out of the recordings", "parts of records", notes),
        _counts("Left out by filters", "trajectories or turns", filtered),
        *others,
    ]
    return [table for table in tables if table.rows]


def _contents(dataset: DataSet) -> list[Counts]:
    tables = [
        _counts("Domains", "trajectories", dataset.domains),
        _counts("Sources", "trajectories", dataset.sources),
        _counts("Licences", "trajectories", dataset.licences),
        _counts("Tags", "turns", dataset.tags),
    ]
    return [table for table in tables if table.rows]


def _lengths(dataset: DataSet) -> list[Counts]:
    titles = {
        "turns": ("Turns of a trajectory", "trajectories"),
        "action": ("Characters of an action", "turns"),
        "observation": ("Characters of an observation", "turns"),
    }
    tables = []
    for name, (title, unit) in titles.items():
        counts: tuple[int, ...] = getattr(dataset.lengths, name)
        first = next((digits for digits, count in enumerate(counts) if count), len(counts))
        rows = {bucket(digits): counts[digits] for digits in range(first, len(counts))}
        tables.append(_counts(title, unit, rows, is_sorted=True))
    return [table for table in tables if table.rows]


def bucket(digits: int) -> str:
    """The range of numbers with this many binary digits, as text."""
    low, high = 1 << max(0, digits - 1), (1 << digits) - 1
    return str(high) if digits <= 1 else f"{low:,} to {high:,}"


def _counts(title: str, unit: str, counts: Mapping[str, int], *, is_sorted: bool = False) -> Counts:
    """The most frequent first, unless the rows have their own order."""
    most = max(counts.values(), default=0) or 1
    rows = [
        Count(label, count, count / most) for label, count in counts.items() if count or is_sorted
    ]
    if not is_sorted:
        rows.sort(key=lambda row: (-row.num, row.label))
    return Counts(title, unit, rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS))


def _examples(stored: StoredDataSet) -> tuple[list[Example], str]:
    examples = []
    try:
        for pool in stored.dataset.pools:
            samples = stored.first_samples(pool, _EXAMPLES_PER_POOL)
            examples += [Example(pool, sample) for sample in samples]
    except AgentworldError as error:
        return [], str(error)
    return examples, ""


def _quarantine(stored: StoredDataSet) -> Iterator[QuarantineRow]:
    for parent in stored.dataset.parents:
        for record in stored.quarantine(parent) if parent.num_quarantined else ():
            problem = redact_text(record.problem)  # by the current rules, however old the import is
            match = _FIELD.fullmatch(problem)
            field, reason = match.groups() if match else ("", problem)
            yield QuarantineRow(record.file, record.place, field, reason)
