"""The protocol of importers, and the table of importers.

Another package adds an importer by an entry point of the group `agentworld.importers`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError, from_json

from agentworld.data.importers.events import Episode, Event, Pair, assemble
from agentworld.data.importers.rows import Row, rows_of
from agentworld.data.secret_search import redacted_problem
from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.base import Record
from agentworld.records.trajectory import Trajectory
from agentworld.storage.source import SourceFile


class ImportResult(NamedTuple):
    """The result of importing one record: a trajectory or a problem."""

    place: str
    """The place of the record in its file, such as `line 3`."""
    trajectory: Trajectory | None = None
    problem: str = ""
    """Why there is no trajectory: the field, its problem, its value."""
    notes: Mapping[str, int] = {}
    """The number of parts that became no turn, by reason."""
    events: Sequence[Event] = ()
    """The parts of the record in order, for `data import --explain`."""
    pairs: Sequence[Pair] = ()
    """One for each turn."""


class ImportOptions(Record):
    """The options of every form."""

    source: str = ""
    """Name of the agent. Default: the one in a record."""
    licence: str = ""
    """Licence of the logs."""


class Importer(Protocol):
    """Reads one form of log."""

    @property
    def options(self) -> type[ImportOptions]:
        """The class of the form's options."""

    def claims(self, value: JsonValue) -> bool:
        """Whether a file's first row is clearly of this form."""

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """The result of each record, in order; a record that is not an episode has a problem."""


@runtime_checkable
class NamedImporter(Importer, Protocol):
    """An importer that recognises its files by their names, without reading them."""

    def claims_name(self, file: SourceFile) -> bool:
        """Whether a file with this name is clearly of this form."""


_KINDS = Kinds[Importer](
    group="agentworld.importers",
    noun="form of recordings",
    attribute="IMPORTER",
    modules={
        "anthropic": "agentworld.data.importers.anthropic",
        "asciinema": "agentworld.data.importers.asciinema",
        "atif": "agentworld.data.importers.atif",
        "chat": "agentworld.data.importers.chat",
        "claude_code": "agentworld.data.importers.claude_code",
        "inspect": "agentworld.data.importers.inspect",
        "ledger": "agentworld.data.importers.ledger",
        "messages": "agentworld.data.importers.messages",
        "mini_swe_agent": "agentworld.data.importers.mini_swe_agent",
        "mlflow": "agentworld.data.importers.mlflow_traces",
        "openhands": "agentworld.data.importers.openhands",
        "spans": "agentworld.data.importers.spans",
        "steps": "agentworld.data.importers.steps",
        "swe_agent": "agentworld.data.importers.swe_agent",
        "trajectories": "agentworld.data.importers.trajectories",
    },
)


def importer_of(name: str) -> Importer:
    """The importer of a form; raises InputError for an unknown form."""
    return _KINDS.find(name)


def module_of(name: str) -> str:
    """The module of a form's importer; raises InputError for an unknown form."""
    return _KINDS.module_of(name)


def own_forms() -> list[str]:
    """The forms that no other package adds."""
    return _KINDS.own_names


def form_of(files: Sequence[SourceFile]) -> str:
    """Recognises the form of a source by its files' names, or by the first readable row.

    Raises InputError if no importer claims it, or if several do.
    """
    claims = _claims_by_name(files) or _claims_by_row(files)
    if len(claims) == 1:
        return claims[0]
    problem = f"fits {' and '.join(claims)}" if claims else "fits no form"
    raise InputError(
        f"{files[0].name} {problem}; name one with --format: {', '.join(_KINDS.names)}"
    )


def _claims_by_name(files: Sequence[SourceFile]) -> list[str]:
    importers = {name: importer_of(name) for name in _KINDS.names}
    return [
        name
        for name, importer in importers.items()
        if isinstance(importer, NamedImporter) and any(importer.claims_name(file) for file in files)
    ]


def _claims_by_row(files: Sequence[SourceFile]) -> list[str]:
    row = next((row for file in files for row in rows_of(file) if not row.problem), None)
    return [name for name in _KINDS.names if row and importer_of(name).claims(row.value)]


def read_rows(
    file: SourceFile, domain: str, convert: Callable[[JsonValue], Episode]
) -> Iterator[ImportResult]:
    """Converts each row of a file, for forms in which a row is one episode."""
    return (read_row(row, domain, convert) for row in rows_of(file))


def read_row(row: Row, domain: str, convert: Callable[[JsonValue], Episode]) -> ImportResult:
    """Converts a row that is one episode."""
    if row.problem:
        return ImportResult(row.place, problem=row.problem)
    return convert_record(row.place, partial(convert, row.value), domain)


def convert_record(place: str, convert: Callable[[], Episode], domain: str) -> ImportResult:
    """Converts one record; a failure is a problem of this record only."""
    try:
        return import_episode(place, convert(), domain)
    except ValidationError as error:
        return ImportResult(place, problem=redacted_problem(error))
    except InputError as error:
        return ImportResult(place, problem=str(error))
    except RecursionError:
        return ImportResult(place, problem="it is nested too deeply")


def import_episode(place: str, episode: Episode, domain: str) -> ImportResult:
    """Assembles an episode into a trajectory of its domain."""
    whole = assemble(episode, domain)
    if problem := problem_of(whole.trajectory):
        return ImportResult(place, problem=problem)
    return ImportResult(
        place, whole.trajectory, notes=whole.notes, events=episode.events, pairs=whole.pairs
    )


def problem_of(trajectory: Trajectory) -> str:
    """Why a trajectory cannot be stored and read back; empty if it can be.

    JSON can escape a lone surrogate, which Unicode text cannot hold.
    """
    if _is_unicode(trajectory):
        if trajectory.tools and not _can_be_read(trajectory):
            return "tools: a schema in it is nested too deeply"
        return ""
    bad = (number for number, turn in enumerate(trajectory.turns) if not _is_unicode(turn))
    location = next((f"turns.{number}" for number in bad), "what stands before the turns")
    return f"{location}: a text in it is no Unicode, for it holds half a character"


def _is_unicode(record: Record) -> bool:
    try:
        record.model_dump_json()
    except PydanticSerializationError:
        return False
    return True


def _can_be_read(record: Record) -> bool:
    """Whether pydantic reads its JSON, of which it limits the depth."""
    try:
        from_json(record.model_dump_json())
    except ValueError:
        return False
    return True
