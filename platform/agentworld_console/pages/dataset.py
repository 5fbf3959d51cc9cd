"""A data set: what was made of it, and what it holds."""

from starlette.requests import Request

from agentworld.audit.questions.dataset import Reader
from agentworld.errors import NotFound
from agentworld.records.base import Digest
from agentworld.reports.dataset import page_values, view_dataset
from agentworld.storage.datasets import prepared_dataset
from agentworld.storage.receipts import step_that_made
from agentworld_console import lists
from agentworld_console.answer import Answer, Elsewhere, ListView, Page, Sheet
from agentworld_console.datasets import DataSets
from agentworld_console.sight import Sight
from agentworld_console.table import Listing
from agentworld_console.words import at


def dataset(sight: Sight, request: Request) -> Answer:
    """The world models that read it, their simulators, and the agents that those trained."""
    name = request.path_params["data"]
    data_sets = DataSets(sight)
    matches = data_sets.find(name)
    if matches != [name]:
        if len(matches) == 1:
            return Elsewhere(at("datasets", matches[0]))
        raise _absent(name)
    readers = data_sets.readers_by_data().get(name, ())
    served = data_sets.simulators(readers)
    values = {
        "digest": name,
        "contents": at("datasets", name, "contents") if _is_readable(sight, name) else "",
        "readers": readers,
        "num_simulators": len(served),
        "simulators": ListView.of(_simulators(sight, name, served)),
        "runs": ListView.of(_runs(sight, name, served), request.query_params.get("from", "")),
    }
    return Page("dataset.html", values)


def contents(sight: Sight, request: Request) -> Answer:
    """Counts, example turns and quarantine: whose recordings they are, only an auditor may know."""
    name = request.path_params["data"]
    stored = prepared_dataset(name, sight.library.store) if sight.is_whole else None
    if stored is None:
        raise _absent(name)
    return Page("contents.html", page_values(view_dataset(stored)))


def simulators_sheet(sight: Sight, request: Request) -> Answer:
    """All simulators that it came into."""
    name = request.path_params["data"]
    return Sheet(f"simulators-{name[7:19]}", _simulators(sight, name, _served(sight, name)))


def runs_sheet(sight: Sight, request: Request) -> Answer:
    """All runs of those, and the agents that they made."""
    name = request.path_params["data"]
    listing = _runs(sight, name, _served(sight, name), lists.OF_A_FILE)
    return Sheet(f"runs-{name[7:19]}", listing)


def _is_readable(sight: Sight, name: Digest) -> bool:
    return sight.is_whole and step_that_made(sight.library.store, "prepare", name) is not None


def _absent(name: str) -> NotFound:
    return NotFound(f"there is no data set {name}; search for another")


def _served(sight: Sight, name: Digest) -> dict[Digest, Reader]:
    data_sets = DataSets(sight)
    return data_sets.simulators(data_sets.readers_by_data().get(name, ()))


def _simulators(sight: Sight, name: Digest, served: dict[Digest, Reader]) -> Listing:
    return lists.simulators_of(sight, at("datasets", name, "simulators"), served)


def _runs(sight: Sight, name: Digest, served: dict[Digest, Reader], *limit: int) -> Listing:
    return lists.runs_of(sight, at("datasets", name, "runs"), served, *limit)
