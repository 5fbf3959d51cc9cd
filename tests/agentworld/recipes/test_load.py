import pytest

from agentworld.errors import InputError, InvalidFile
from agentworld.recipes import load_recipe
from agentworld.recipes.load import check_recipe


def write_recipe(folder, text):
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_all_problems_of_a_recipe_are_reported_in_line_order(tmp_path):
    text = (
        "name: x\nmodel: {hidden_sise: 64}\ncollect:\n  num_transitions: -3\n  seed: 1\n  seed: 2\n"
    )
    path = write_recipe(tmp_path, text)
    with pytest.raises(InvalidFile) as error:
        load_recipe(path)
    assert error.value.problems == (
        f"line 2 of the recipe {path} is wrong at model.hidden_sise: there is no such field;"
        " did you mean hidden_size?",
        f"line 4 of the recipe {path} is wrong at collect.num_transitions: it should be greater"
        " than 0 (got '-3')",
        f"line 6 of the recipe {path} is wrong at collect.seed: it is in line 5 already; keep"
        " one of the two",
    )


@pytest.mark.compute
@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("collect: {learning_rate: 1}", "did you mean cpt.learning_rate or sft.learning_rate"),
        ("deploy: {zzz: 1}", "leave it out, or write one of: alias"),
        ("engine: {dtype: bfloat}", "did you mean bfloat16?"),
        ("nightly: {simulator: 12}", "put it in quotes"),
        ("engine: {parallelism: 2}", "transformers-serve takes neither quantisation nor"),
        ("gate: [{metric: a}]", "Field required"),
        ("gate: [{metric: a, least: 1, leest: 1}]", "did you mean least?"),
    ],
)
def test_a_problem_suggests_a_correction(tmp_path, section, message):
    (problem,) = check_recipe(write_recipe(tmp_path, f"name: x\n{section}\n"))
    assert message in problem.message
    assert problem.line == 2


def test_a_missing_name_is_a_problem_of_the_whole_file(tmp_path):
    (problem,) = check_recipe(write_recipe(tmp_path, ""))
    assert (problem.line, problem.field) == (None, "the whole")


def test_checking_a_recipe_with_recursive_yaml_aliases_ends_with_problems(tmp_path):
    path = write_recipe(tmp_path, "name: x\ncollect: &a\n  options: &b {x: *a, y: *b}\n")
    assert check_recipe(path)


@pytest.mark.parametrize("value", ["!!float x", "!!bool x", "!!int ''", "!!timestamp x"])
def test_a_value_that_does_not_match_its_yaml_tag_is_refused(tmp_path, value):
    with pytest.raises(InputError, match="is not YAML: a value does not fit its tag"):
        load_recipe(write_recipe(tmp_path, f"name: {value}\n"))


@pytest.mark.compute
def test_a_file_that_is_nested_too_deeply_is_refused_in_a_sentence(tmp_path):
    path = write_recipe(tmp_path, "[" * 1_000)
    with pytest.raises(InputError) as error:
        load_recipe(path)
    sentence = f"the recipe {path} is not YAML: it is nested too deeply; write fewer levels"
    assert str(error.value) == sentence


def test_a_date_is_read_as_a_string(tmp_path):
    recipe = load_recipe(
        write_recipe(tmp_path, "name: 2026-01-31\ncollect: {options: {a: 2026-99-99}}\n")
    )
    assert (recipe.name, recipe.collect.options) == ("2026-01-31", {"a": "2026-99-99"})


MERGED = "name: x\ncpt: &t {stage: cpt, learning_rate: 1e-3}\nsft:\n  <<: *t\n"


def test_a_mapping_may_override_a_key_that_it_merges(tmp_path):
    recipe = load_recipe(write_recipe(tmp_path, f"{MERGED}  stage: sft\n"))
    assert (recipe.sft.stage, recipe.sft.learning_rate) == ("sft", 1e-3)


def test_a_duplicate_key_beside_a_merge_is_reported(tmp_path):
    (problem,) = check_recipe(write_recipe(tmp_path, f"{MERGED}  stage: sft\n  stage: sft\n"))
    assert (problem.line, problem.field) == (6, "sft.stage")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("2E-4", 2e-4), (".5e-3", 5e-4), ("0.01", 0.01)],
)
def test_a_learning_rate_may_be_in_scientific_or_decimal_notation(tmp_path, text, value):
    recipe = load_recipe(write_recipe(tmp_path, f"name: x\nrl: {{learning_rate: {text}}}\n"))
    assert recipe.rl.learning_rate == value


@pytest.mark.parametrize(("text", "value"), [("2e5", 200_000), ("200_000", 200_000)])
def test_a_count_may_have_an_exponent_or_underscores(tmp_path, text, value):
    recipe = load_recipe(write_recipe(tmp_path, f"name: x\ncollect: {{num_transitions: {text}}}\n"))
    assert recipe.collect.num_transitions == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", True), ("On", True), ("true", True), ("no", False), ("OFF", False), ("False", False)],
)
def test_a_boolean_may_be_yes_no_on_or_off(tmp_path, text, value):
    recipe = load_recipe(write_recipe(tmp_path, f"name: x\nprepare: {{redact: {text}}}\n"))
    assert recipe.prepare.redact is value


def test_yes_and_off_stay_strings_in_string_fields(tmp_path):
    recipe = load_recipe(write_recipe(tmp_path, "name: yes\ncpt: {stage: cpt, reasoning: off}\n"))
    assert (recipe.name, recipe.cpt.reasoning) == ("yes", "off")
