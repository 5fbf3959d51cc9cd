"""The rows of one episode after another, of a table in which a row is one step."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentworld.data.contents import Contents
from agentworld.data.importers.paths import text_at
from agentworld.data.importers.rows import Row
from agentworld.data.secret_search import redact_start
from agentworld.errors import InputError

_MOST_OF_NAME = 80


class EpisodeRows(NamedTuple):
    """The rows of an episode, or one that belongs to none."""

    place: str
    name: str
    rows: list[Row]
    problem: str = ""


def episode_rows(rows: Iterable[Row], path: str) -> Iterator[EpisodeRows]:
    """Rows that follow each other and have the same name at the path.

    A row that cannot be read may be of the episode before it or of the one after it: neither is
    known to be whole, and both have a problem.
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
    """What is wrong where the name stood before: 8 bytes of each name are in memory."""
    if not earlier.add_text(name):
        start = redact_start(name, _MOST_OF_NAME)
        return f"{path}: rows of {start!r} stand apart; sort the table by {path}"
    return ""
