import pytest

from agentworld.data.importers.paths import fill, keys_at, names_in, value_at, value_of
from agentworld.errors import InputError

VALUE = {"a": {"x": {"list": [1, 2]}, "y.z": {"list": []}}, "b.c": 3}


@pytest.mark.parametrize(
    ("path", "value"), [("", VALUE), ("a.x.list.1", 2), ("b.c", 3), ("a.y.z", None)]
)
def test_a_path_finds_nested_values_and_top_level_names_with_dots(path, value):
    if value is None:
        with pytest.raises(InputError, match=r"there is no a\.y\.z; name another path"):
            value_at(VALUE, path)
    else:
        assert value_at(VALUE, path) == value


@pytest.mark.parametrize("path", ["a.x.list.2", "a.x.list.²", "a.x.list.-1", "c", "b.c.0"])
def test_a_path_without_a_value_is_an_error(path):
    with pytest.raises(InputError, match="there is no"):
        value_at(VALUE, path)


def test_a_star_matches_every_key_and_every_index():
    keys = list(keys_at(VALUE, "a.*.list.*"))
    assert keys == [("a", "x", "list", "0"), ("a", "x", "list", "1")]
    assert [value_of(VALUE, key) for key in keys] == [1, 2]
    assert list(keys_at(VALUE, "a.x")) == [("a", "x")]
    assert list(keys_at([7], "*")) == [("0",)]


def test_a_star_without_a_match_stays():
    assert list(keys_at(VALUE, "b.*.d")) == [("b", "*", "d")]
    assert list(keys_at(VALUE, "*")) == [("a",), ("b.c",)]
    assert list(keys_at(3, "*.*")) == [("*", "*")]


def test_the_matches_of_stars_fill_another_path():
    keys = ("a", "y.z", "list")
    assert names_in("a.*.list", keys) == ("y.z",)
    assert fill("a.*.task", ["y.z"]) == ("a", "y.z", "task")
    assert fill("", ["y.z"]) == ()
