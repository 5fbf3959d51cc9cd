"""Computes a graph's layout: columns from left to right, with few crossings.

Pure: equal graphs get equal layouts.
"""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import ceil
from statistics import mean
from typing import NamedTuple

_PAGE_WIDTH = 1_150
"""The width of a page, which fits a graph with all kinds of nodes."""
_LEAST_LETTERS = 15
_LEAST_WIDTH = 104
_LETTER_WIDTH = 7.25
"""The width of a letter in the labels' font."""
_PADDING = 16
"""The horizontal padding of a label."""
BOX_HEIGHT = 38
_GAP_ACROSS = 20
_GAP_OF_MANY = 84
"""The gap between columns if a node has more edges than _FEW_EDGES, which need room."""
_FEW_EDGES = 4
_GAP_DOWN = 10
_MARGIN = 8
_SWEEPS = 8
_ROWS_OF_A_SCREEN = 12
"""A short column is centred in at most so many rows, so that it is visible beside a long one."""

Edge = tuple[str, str]
_Columns = list[list[str]]


class Box(NamedTuple):
    """A node's place, in pixels."""

    x: int
    y: int
    width: int
    height: int = BOX_HEIGHT

    @property
    def right(self) -> int:
        """The x position where edges leave it."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """The y position of its edges."""
        return self.y + self.height / 2


class Layout(NamedTuple):
    """Boxes by their nodes, and the size of the whole."""

    boxes: dict[str, Box]
    width: int
    height: int
    most_letters: int
    """The number of letters that fit into the box of a label."""


def compute_layout(
    layers: Mapping[str, int], edges: Sequence[Edge], letters: Mapping[str, int] | None = None
) -> Layout:
    """Places nodes by their layers; an empty layer takes no room.

    `letters` has the length of each node's label. A column is as wide as its longest label if all
    columns fit into a page; otherwise labels are shortened to the letters that fit, but to no fewer
    than 15. Raises ValueError for an edge that does not go to a later layer.
    """
    for start, end in edges:
        if layers[start] >= layers[end]:
            raise ValueError(f"the edge from {start} to {end} does not go right")
    columns = _order(_columns(layers), edges)
    longest = [max((letters or {}).get(node, 0) for node in column) for column in columns]
    gaps = _gaps(columns, edges)
    most_letters = _most_letters(longest, sum(gaps))
    widths = [_width(min(num, most_letters)) for num in longest]
    rows = min(max(map(len, columns), default=0), _ROWS_OF_A_SCREEN)
    boxes = {
        node: Box(x, _row_position(row + max(0, rows - len(column)) / 2), width)
        for x, width, column in zip(_column_positions(widths, gaps), widths, columns, strict=True)
        for row, node in enumerate(column)
    }
    return Layout(
        boxes,
        max((box.right for box in boxes.values()), default=0) + _MARGIN,
        max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN,
        most_letters,
    )


def num_crossings(columns: Sequence[Sequence[str]], edges: Sequence[Edge]) -> int:
    """The number of crossings of edges between the same two columns."""
    positions = {
        node: (index, row)
        for index, column in enumerate(columns)
        for row, node in enumerate(column)
    }
    between: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for start, end in edges:
        (left, from_row), (right, to_row) = positions[start], positions[end]
        between[left, right].append((from_row, to_row))
    return sum(_inversions([to_row for _, to_row in sorted(pairs)]) for pairs in between.values())


def _inversions(rows: list[int]) -> int:
    previous: list[int] = []
    count = 0
    for row in rows:
        count += len(previous) - bisect_right(previous, row)
        insort(previous, row)
    return count


def _columns(layers: Mapping[str, int]) -> _Columns:
    by_layer: defaultdict[int, list[str]] = defaultdict(list)
    for node, layer in layers.items():
        by_layer[layer].append(node)
    return [by_layer[layer] for layer in sorted(by_layer)]


def _order(columns: _Columns, edges: Sequence[Edge]) -> _Columns:
    """Orders nodes by barycenters, to the right and back (Sugiyama, Tagawa, Toda 1981)."""
    before: defaultdict[str, list[str]] = defaultdict(list)
    after: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        before[end].append(start)
        after[start].append(end)
    best, least = columns, num_crossings(columns, edges)
    for sweep in range(_SWEEPS):
        if least == 0:
            break
        columns = _reorder(columns, after if sweep % 2 else before, backwards=bool(sweep % 2))
        crossings = num_crossings(columns, edges)
        if crossings < least:
            best, least = columns, crossings
    return best


def _reorder(
    columns: _Columns, neighbours: Mapping[str, list[str]], *, backwards: bool
) -> _Columns:
    rows = {node: row for column in columns for row, node in enumerate(column)}
    ordered = list(columns)
    indices = range(len(columns))
    for index in reversed(indices) if backwards else indices:
        column = columns[index]
        barycenters = {
            node: mean(rows[other] for other in neighbours[node]) if neighbours.get(node) else row
            for row, node in enumerate(column)
        }
        ordered[index] = sorted(column, key=lambda node: (barycenters[node], rows[node]))
        rows.update({node: row for row, node in enumerate(ordered[index])})
    return ordered


def _gaps(columns: _Columns, edges: Sequence[Edge]) -> list[int]:
    """The gap after each column."""
    outgoing, incoming = (Counter(edge[end] for edge in edges) for end in (0, 1))
    nums_of_edges = (
        max((*(outgoing[n] for n in column), *(incoming[n] for n in following)), default=0)
        for column, following in pairwise(columns)
    )
    return [_GAP_OF_MANY if num > _FEW_EDGES else _GAP_ACROSS for num in nums_of_edges]


def _most_letters(longest: Sequence[int], gaps: int) -> int:
    free_width = _PAGE_WIDTH - 2 * _MARGIN - gaps
    for most in range(max(longest, default=0), _LEAST_LETTERS, -1):
        if sum(_width(min(num, most)) for num in longest) <= free_width:
            return most
    return _LEAST_LETTERS


def _width(letters: int) -> int:
    return max(_LEAST_WIDTH, ceil(_PADDING + letters * _LETTER_WIDTH))


def _column_positions(widths: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """The x position of each column."""
    steps = (width + gap for width, gap in zip(widths, gaps, strict=False))
    return list(accumulate(steps, initial=_MARGIN))[: len(widths)]


def _row_position(row: float) -> int:
    return _MARGIN + round(row * (BOX_HEIGHT + _GAP_DOWN))
