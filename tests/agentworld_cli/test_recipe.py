import json

import pytest
import yaml

from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.recipes.load import shipped_recipes

WRONG_RECIPE = "name: x\nmodel:\n  hidden_sise: 64\ncollect:\n  num_transitions: -3\n"


def test_recipe_list_shows_the_shipped_recipes_with_their_purpose(call):
    rows = json.loads(call("recipe list --json").out)
    assert [row["name"] for row in rows] == list(shipped_recipes())
    assert all(row["about"] for row in rows)
    output = call("recipe list").out
    assert "smoke        The whole loop in a few minutes" in output


@pytest.mark.compute
def test_recipe_show_prints_an_equal_recipe_with_its_defaults(call, tmp_path):
    path = tmp_path / "shown.yaml"
    path.write_text(call("recipe show smoke").out)
    assert load_recipe(path) == load_recipe(recipe_path("smoke"))
    assert yaml.safe_load(path.read_text())["rl"]["learning_rate"] == 1e-4
    fields = json.loads(call("recipe show smoke --json").out)
    assert Recipe.model_validate(fields) == load_recipe(path)


def test_recipe_show_quotes_texts_that_look_like_numbers(call, tmp_path):
    path, shown_path = tmp_path / "mine.yaml", tmp_path / "shown.yaml"
    path.write_text("name: '12e4'\ncollect: {options: {starts_after: '1e-3'}}\n")
    shown_path.write_text(call(f"recipe show {path}").out)
    assert load_recipe(shown_path) == load_recipe(path)


@pytest.mark.compute
def test_the_fields_of_a_section_are_printed_with_type_default_unit_and_meaning(call):
    lines = call("recipe fields cpt").out.splitlines()
    assert "cpt.tokens_per_batch: whole number, > 0 (tokens), default 8192" in lines
    assert any(line.startswith("    Tokens of a batch, padding included;") for line in lines)
    assert all(line.startswith(("cpt.", "    ")) for line in lines)
    rows = json.loads(call("recipe fields gate --json").out)
    assert [row["name"] for row in rows] == ["gate", "gate[].metric", "gate[].least"]


@pytest.mark.compute
def test_an_unknown_recipe_section_is_refused_with_the_known_ones(call):
    result = call("recipe fields cptt")
    assert result.code == 2
    assert "no section 'cptt'; give one of: name, collect" in result.error


def test_recipe_check_prints_a_sentence_for_each_problem(call, tmp_path):
    (tmp_path / "mine.yaml").write_text(WRONG_RECIPE)
    result = call(f"recipe check {tmp_path}/mine.yaml")
    assert (result.code, result.out) == (2, "")
    first, second = result.error.splitlines()
    assert first.startswith("error: line 3 of the recipe ")
    assert first.endswith("model.hidden_sise: there is no such field; did you mean hidden_size?")
    assert "line 5 of the recipe" in second


def test_recipe_check_prints_the_problems_as_json(call, tmp_path):
    (tmp_path / "mine.yaml").write_text(WRONG_RECIPE)
    result = call(f"recipe check {tmp_path}/mine.yaml --json")
    report = json.loads(result.out)
    assert (result.code, report["valid"]) == (2, False)
    assert [(problem["line"], problem["field"]) for problem in report["problems"]] == [
        (3, "model.hidden_sise"),
        (5, "collect.num_transitions"),
    ]


def test_recipe_check_reports_a_valid_recipe(call):
    assert call("recipe check demo").out.endswith("demo.yaml is a valid recipe\n")
    assert json.loads(call("recipe check demo --json").out) == {"valid": True, "problems": []}
