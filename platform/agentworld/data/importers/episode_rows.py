"""Groups the rows of a table by episode; a row is one step."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentworld.data.contents import Contents
from agentworld.data.importers.paths import text_at
from agentworld.data.importers.rows import Row
from agentworld.data.secret_search import redact_start
from agentworld.errors import InputError

_MOST_OF_NAME = 80


class EpisodeRows(NamedTuple):
    """The rows of an episode, or one row that belongs to none."""

    place: str
    name: str
    rows: list[Row]
    problem: str = ""


def episode_rows(rows: Iterable[Row], path: str) -> Iterator[EpisodeRows]:
    """Groups consecutive rows with the same name at the path.

    A row that cannot be read may belong to the episode before it or after it. Either may be
    incomplete, so both have a problem.
    """
    group, damage, earlier = EpisodeRows("", "", []), "", Contents()
    for row in rows:
        name, problem = _name(row, path)
        if problem:
            yield EpisodeRows(row.place, "", [], problem)
            damage = f"a step of it may be missing, for {row.place or 'a row'} cannot be read"
            group = group._replace(problem=group.problem or damage)
            continue
        if not group.rows or name != group.name:
            if group.rows:
                yield group
            group = EpisodeRows(row.place, name, [], damage or _repetition(name, path, earlier))
        group.rows.append(row)
        damage = ""
    if group.rows:
        yield group


def _name(row: Row, path: str) -> tuple[str, str]:
    try:
        return ("", row.problem) if row.problem else (text_at(row.value, path), "")
    except InputError as error:
        return "", str(error)


def _repetition(name: str, path: str, earlier: Contents) -> str:
    """The problem of a name that an earlier episode had; 8 bytes of each name are in memory."""
    if not earlier.add_text(name):
        start = redact_start(name, _MOST_OF_NAME)
        return f"{path}: rows of {start!r} stand apart; sort the table by {path}"
    return ""
