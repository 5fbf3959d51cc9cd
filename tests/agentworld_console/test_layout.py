import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld_console.layout import compute_layout, num_crossings


@st.composite
def graphs(draw):
    """Nodes in layers with edges that go to later ones."""
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
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            beside = one.right <= other.x or other.right <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y


@given(graphs())
def test_every_edge_goes_right(graph):
    boxes = compute_layout(*graph).boxes
    assert all(boxes[start].right < boxes[end].x for start, end in graph[1])


@given(graphs())
def test_every_box_is_in_the_picture(graph):
    laid = compute_layout(*graph)
    assert set(laid.boxes) == set(graph[0])
    assert all(0 <= box.x < box.right < laid.width for box in laid.boxes.values())
    assert all(0 <= box.y < box.y + box.height < laid.height for box in laid.boxes.values())


@given(graphs())
def test_equal_graphs_get_equal_places(graph):
    layers, edges = graph
    assert compute_layout(layers, edges) == compute_layout(dict(layers), list(edges))


@given(graphs())
def test_the_order_never_makes_more_crossings(graph):
    layers, edges = graph
    given_ = [[n for n in layers if layers[n] == layer] for layer in sorted(set(layers.values()))]
    boxes = compute_layout(layers, edges).boxes
    ordered = [sorted(column, key=lambda node: boxes[node].y) for column in given_]
    assert num_crossings(ordered, edges) <= num_crossings(given_, edges)


def test_crossings_that_can_be_undone_are_undone():
    layers = {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "z": 1}
    edges = [("a", "z"), ("b", "y"), ("c", "x")]
    assert num_crossings([["a", "b", "c"], ["x", "y", "z"]], edges) == 3
    boxes = compute_layout(layers, edges).boxes
    assert [boxes[start].y == boxes[end].y for start, end in edges] == [True] * 3


def test_many_edges_of_one_node_have_more_room_to_part():
    few = compute_layout({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("b", "c")]).boxes
    many = compute_layout(
        {"a": 0, "b": 1, **dict.fromkeys("uvwxyz", 2)}, [("b", n) for n in "uvwxyz"]
    )
    assert many.boxes["b"].x == few["b"].x
    assert many.boxes["u"].x > few["c"].x + 40


def test_a_graph_of_nothing_has_no_boxes():
    assert compute_layout({}, []).boxes == {}


def test_an_edge_that_goes_back_is_refused():
    with pytest.raises(ValueError, match="from b to a does not go right"):
        compute_layout({"a": 0, "b": 1}, [("b", "a")])
