from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld_console.layout import compute_layout, num_crossings


@st.composite
def graphs(draw):
    """Nodes in layers, and edges to nodes of later layers."""
    layers = draw(
        st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(0, 9), max_size=40)
    )
    nodes = sorted(layers)
    pairs = [(a, b) for a in nodes for b in nodes if layers[a] < layers[b]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=60, unique=True)) if pairs else []
    return layers, edges


@given(graphs())
def test_no_two_boxes_overlap(graph):
    boxes = list(compute_layout(*graph).boxes.values())
    for index, box in enumerate(boxes):
        for other in boxes[index + 1 :]:
            is_beside = box.right <= other.x or other.right <= box.x
            assert is_beside or box.y + box.height <= other.y or other.y + other.height <= box.y


@given(graphs())
def test_every_edge_points_right(graph):
    boxes = compute_layout(*graph).boxes
    assert all(boxes[start].right < boxes[end].x for start, end in graph[1])


@given(graphs())
def test_every_box_is_in_the_picture(graph):
    layout = compute_layout(*graph)
    assert set(layout.boxes) == set(graph[0])
    assert all(0 <= box.x < box.right < layout.width for box in layout.boxes.values())
    assert all(0 <= box.y < box.y + box.height < layout.height for box in layout.boxes.values())


@given(graphs())
def test_equal_graphs_get_equal_layouts(graph):
    layers, edges = graph
    assert compute_layout(layers, edges) == compute_layout(dict(layers), list(edges))


@given(graphs())
def test_the_layout_order_never_adds_crossings(graph):
    layers, edges = graph
    columns = [[n for n in layers if layers[n] == layer] for layer in sorted(set(layers.values()))]
    boxes = compute_layout(layers, edges).boxes
    ordered = [sorted(column, key=lambda node: boxes[node].y) for column in columns]
    assert num_crossings(ordered, edges) <= num_crossings(columns, edges)


def test_avoidable_crossings_are_removed():
    layers = {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "z": 1}
    edges = [("a", "z"), ("b", "y"), ("c", "x")]
    assert num_crossings([["a", "b", "c"], ["x", "y", "z"]], edges) == 3
    boxes = compute_layout(layers, edges).boxes
    assert [boxes[start].y == boxes[end].y for start, end in edges] == [True] * 3


def test_many_edges_of_one_node_widen_the_gap_between_columns():
    few = compute_layout({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("b", "c")]).boxes
    many = compute_layout(
        {"a": 0, "b": 1, **dict.fromkeys("uvwxyz", 2)}, [("b", n) for n in "uvwxyz"]
    )
    assert many.boxes["b"].x == few["b"].x
    assert many.boxes["u"].x > few["c"].x + 40


def test_labels_are_uncut_where_all_columns_fit_the_page():
    layout = compute_layout({"a": 0, "b": 1}, [("a", "b")], {"a": 12, "b": 40})
    assert layout.most_letters == 40
    assert layout.boxes["b"].width > 2 * layout.boxes["a"].width


def test_the_longest_labels_are_cut_just_enough_to_fit_the_page():
    nodes = "abcdefgh"
    letters = dict.fromkeys(nodes, 12) | {"g": 32, "h": 200}
    edges = list(pairwise(nodes))
    layout = compute_layout({node: index for index, node in enumerate(nodes)}, edges, letters)
    assert 15 < layout.most_letters < 200
    assert 1_150 - 2 * 7.25 <= layout.width <= 1_150


def test_a_label_keeps_fifteen_letters_in_a_graph_wider_than_the_page():
    nodes = "abcdefghijklmnop"
    layers = {node: index for index, node in enumerate(nodes)}
    layout = compute_layout(layers, list(pairwise(nodes)), dict.fromkeys(nodes, 30))
    assert layout.most_letters == 15
    assert layout.width > 1_150


def test_an_empty_graph_has_no_boxes():
    assert compute_layout({}, []).boxes == {}


def test_a_backward_edge_is_refused():
    with pytest.raises(ValueError, match="from b to a does not go right"):
        compute_layout({"a": 0, "b": 1}, [("b", "a")])
