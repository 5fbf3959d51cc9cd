import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from accepting import accepts
from agentworld.domains.tool_schema import check_schema, compare
from agentworld.errors import InputError

LEAVES = st.sampled_from(
    [
        True,
        {"type": "integer", "minimum": 0},
        {"type": ["number", "null"], "multipleOf": 0.5},
        {"type": "string", "pattern": "^a+$", "maxLength": 3},
        {"enum": ["a", 1, None, [True]]},
        {"not": {"const": 0}},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda schema: {"type": "array", "items": schema, "uniqueItems": True}, inner)
        | st.builds(lambda first, second: {"anyOf": [first, second]}, inner, inner)
        | st.builds(lambda schema: {"properties": {"a": schema}, "required": ["a"]}, inner)
        | st.builds(lambda schema: {"$defs": {"x": schema}, "additionalProperties": False}, inner)
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, -1, "a", "aaaa", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@pytest.mark.compute
@given(
    st.dictionaries(st.sampled_from("ab"), SCHEMAS), st.dictionaries(st.sampled_from("ab"), VALUES)
)
def test_compare_agrees_with_json_schema(properties, value):
    schema = {"type": "object", "properties": properties}
    check_schema(schema)
    assert accepts(compare, value, schema) == Draft202012Validator(schema).is_valid(value)


def schema_of(**part):
    """A schema whose property `a` has this part as its schema."""
    return {"type": "object", "properties": {"a": part}}


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "127.0.0.1:9"),
        ({"$ref": "file:///etc/passwd"}, "/etc/passwd"),
        ({"$ref": "#/nowhere"}, "does not exist"),
        ({"$ref": "#/type/0"}, "is not of type 'object'"),
        ({"$ref": "#/properties/a/enum", "enum": [1]}, "is not of type 'object'"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "draft/2020-12"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema is not supported"),
        ({"$id": "http://127.0.0.1:9/"}, "$id is not supported"),
        ({"patternProperties": {"(a+)+$": True}}, "patternProperties is not supported"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not supported"),
        ({"default": {"$dynamicRef": "#"}}, "$dynamicRef is not supported"),
        ({"pattern": "("}, "missing )"),
        ({"type": "text"}, "'text' is not valid"),
    ],
    ids=str,
)
def test_an_invalid_or_unsupported_schema_is_refused(part, problem):
    with pytest.raises(InputError) as error:
        check_schema(schema_of(**part))
    assert problem in str(error.value)


@pytest.mark.parametrize("keyword", ["$schema", "$id", "pattern", "$ref"])
def test_an_argument_can_be_named_like_a_schema_keyword(keyword):
    schema = {"type": "object", "properties": {keyword: {"type": "string"}}}
    check_schema(schema)
    compare({keyword: "("}, schema)
    assert not accepts(compare, {keyword: 1}, schema)


def test_a_draft_7_schema_is_compared_as_a_current_schema():
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema_of(type="integer")}
    check_schema(schema)
    assert [accepts(compare, {"a": value}, schema) for value in (1, "1")] == [True, False]


def test_a_recursive_schema_is_compared_at_every_depth():
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    check_schema(tree)
    assert accepts(compare, {"kids": [{"kids": []}]}, tree)
    assert not accepts(compare, {"kids": [{"kids": [1]}]}, tree)


DOUBLINGS = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.compute
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, {}),
        ({"$defs": {**DOUBLINGS, "d40": {}}, "$ref": "#/$defs/d0"}, {}),
        (schema_of(pattern=r"^((x|x)*(x|x)*(x|x)*(.)\5y|(a?){40}a{40})$"), {"a": "x" * 400}),
        (schema_of(multipleOf=0.5), {"a": 10**400}),
    ],
    ids=["endless", "doubling", "backtracking", "huge"],
)
def test_a_comparison_that_is_too_deep_or_too_slow_is_refused(schema, value):
    schema = {"type": "object", **schema}
    check_schema(schema)
    with pytest.raises(InputError, match="too deep, too large or take more than 0.25 s"):
        compare(value, schema)


def test_endless_references_are_refused_at_any_stack_depth():
    def compare_below(num_frames):
        if num_frames:
            compare_below(num_frames - 1)
        else:
            compare({}, {"type": "object", "$ref": "#"})

    for num_frames in range(20):
        with pytest.raises(InputError, match="too deep"):
            compare_below(num_frames)


@pytest.mark.parametrize(("depth", "is_accepted"), [(40, True), (60, False)])
def test_a_value_can_be_nested_up_to_the_depth_limit(depth, is_accepted):
    value, schema = {}, {"type": "object"}
    for _ in range(depth):
        value, schema = {"a": value}, schema_of(allOf=[schema])
    assert accepts(compare, value, schema) == is_accepted


def test_unique_items_of_a_long_list_are_checked_in_time():
    value = {"a": [{"n": n} for n in range(20_000)]}
    assert accepts(compare, value, schema_of(uniqueItems=True))


@pytest.mark.compute
def test_a_schema_whose_references_expand_too_far_is_refused():
    deep_schema = {"properties": {f"p{n}": {"type": "string"} for n in range(600)}}
    for _ in range(20):
        deep_schema = {"not": deep_schema}
    paths = ["#/$defs/c" + "/not" * n for n in range(20)]
    schema = {"$defs": {"c": deep_schema}, "allOf": [{"$ref": path} for path in paths]}
    with pytest.raises(InputError, match="its references lead to more than"):
        check_schema(schema)


def test_a_schema_that_is_too_deep_is_refused():
    schema = {"type": "string"}
    for _ in range(2_000):
        schema = {"not": schema}
    with pytest.raises(InputError):
        check_schema(schema)
