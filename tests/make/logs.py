"""Recorded logs of other programs, and their importers' results."""

import copy
import json

from hypothesis import strategies as st

from agentworld.data.importers.base import importer_of
from agentworld.storage.source import files_of

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)


def read(form, folder, *rows, name="log.jsonl", domain="text", **options):
    """The importer's results for rows; a text is written unchanged."""
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    importer = importer_of(form)
    return list(importer.read(files_of(str(path))[0], importer.options(**options), domain))


def one(form, folder, *rows, **options):
    """The only record, which has no problem."""
    (record,) = read(form, folder, *rows, **options)
    assert not record.problem, record.problem
    return record


def turns(record):
    """Action and observation of each turn."""
    return [(turn.action, turn.observation) for turn in record.trajectory.turns]


@st.composite
def damaged(draw, value):
    """The value with one to three parts replaced."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places:
            return draw(ANYTHING)
        parent, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            parent[key] = draw(ANYTHING)
        elif isinstance(parent, dict):
            del parent[key]
        else:
            parent.insert(key, parent[key])
    return value


def _places(value):
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield value, key
        yield from _places(value[key])


def none_is_lost(records):
    """Whether there are records, and each is a trajectory or a problem."""
    consistent = [(record.trajectory is None) == bool(record.problem) for record in records]
    return bool(consistent) and all(consistent)
