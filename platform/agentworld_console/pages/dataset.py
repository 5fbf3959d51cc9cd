"""A data set's page: its descendants, and its content."""

from starlette.requests import Request

from agentworld.audit.questions.dataset import Reader
from agentworld.errors import NotFound
from agentworld.records.base import Digest
from agentworld.reports.dataset import page_values, view_dataset
from agentworld.storage.datasets import prepared_dataset
from agentworld.storage.receipts import step_that_made
from agentworld_console import lists
from agentworld_console.answer import Answer, ListView, Page, Redirect, Sheet
from agentworld_console.datasets import DataSets
from agentworld_console.formatting import page_path
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Listing


def dataset(view: ScopedView, request: Request) -> Answer:
    """The world models that read it, their simulators, and the agents that these trained."""
    name = request.path_params["data"]
    data_sets = DataSets(view)
    matches = data_sets.find(name)
    if matches != [name]:
        if len(matches) == 1:
            return Redirect(page_path("datasets", matches[0]))
        raise _absent(name)
    readers = data_sets.readers_by_data().get(name, ())
    served = data_sets.simulators(readers)
    values = {
        "digest": name,
        "contents": page_path("datasets", name, "contents") if _is_readable(view, name) else "",
        "dataset": data_sets.manifest(name),
        "readers": readers,
        "num_simulators": len(served),
        "simulators": ListView.of(_simulators(view, name, served)),
        "runs": ListView.of(_runs(view, name, served), request.query_params.get("from", "")),
    }
    return Page("dataset.html", values)


def contents(view: ScopedView, request: Request) -> Answer:
    """Counts, example turns and quarantine, for auditors only: they reveal whose data it is."""
    name = request.path_params["data"]
    stored = prepared_dataset(name, view.library.store) if view.is_whole else None
    if stored is None:
        raise _absent(name)
    return Page("contents.html", page_values(view_dataset(stored)))


def simulators_sheet(view: ScopedView, request: Request) -> Answer:
    """All simulators that were made from it."""
    name = request.path_params["data"]
    return Sheet(f"simulators-{name[7:19]}", _simulators(view, name, _served_readers(view, name)))


def runs_sheet(view: ScopedView, request: Request) -> Answer:
    """All runs of those, and their agents."""
    name = request.path_params["data"]
    listing = _runs(view, name, _served_readers(view, name), lists.OF_A_FILE)
    return Sheet(f"runs-{name[7:19]}", listing)


def _is_readable(view: ScopedView, name: Digest) -> bool:
    return view.is_whole and step_that_made(view.library.store, "prepare", name) is not None


def _absent(name: str) -> NotFound:
    return NotFound(f"there is no data set {name}; search for another")


def _served_readers(view: ScopedView, name: Digest) -> dict[Digest, Reader]:
    data_sets = DataSets(view)
    return data_sets.simulators(data_sets.readers_by_data().get(name, ()))


def _simulators(view: ScopedView, name: Digest, served: dict[Digest, Reader]) -> Listing:
    return lists.simulators_of(view, page_path("datasets", name, "simulators"), served)


def _runs(view: ScopedView, name: Digest, served: dict[Digest, Reader], *limit: int) -> Listing:
    return lists.runs_of(view, page_path("datasets", name, "runs"), served, *limit)
