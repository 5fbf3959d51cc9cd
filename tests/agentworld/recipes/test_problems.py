"""Messages about invalid values in a file."""

import pytest
from pydantic import BaseModel, ValidationError

from agentworld.recipes.problems import Problem, all_problems
from agentworld.recipes.yaml_text import read_yaml
from agentworld.records.base import Record
from agentworld.records.gate import Gate


class ExampleRecord(Record):
    gate: Gate | int = 0
    words: dict[str, str] = {}


def problem_of(kind: type[BaseModel], text: str) -> Problem:
    """The first problem of a document."""
    document = read_yaml(text)
    with pytest.raises(ValidationError) as error:
        kind.model_validate(document.value)
    return all_problems(kind, error.value, document.root)[0]


def test_an_unknown_field_of_a_union_is_reported_without_suggestions():
    problem = problem_of(ExampleRecord, "gate: {metric: a, least: 1, zzz: 1}")
    assert problem == Problem(1, "gate.Gate.zzz", "there is no such field; leave it out")


def test_a_field_may_have_a_colon_in_its_name():
    problem = problem_of(ExampleRecord, "gate: 1\nwords: {'a: b': 3}")
    text = "it should be a valid string (got '3'); put it in quotes"
    assert problem == Problem(2, "words.a: b", text)


@pytest.mark.parametrize("value", ["12e4", "1_000", "0123", "12:30", "TRUE"])
def test_a_value_is_shown_as_it_was_written(value):
    (field, text) = problem_of(ExampleRecord, f"words: {{zone: {value}}}")[1:]
    assert field == "words.zone"
    assert text == f"it should be a valid string (got '{value}'); put it in quotes"
