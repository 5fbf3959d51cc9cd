import pytest

from agentworld.errors import InputError
from agentworld.recipes import load_recipe, recipe_path
from agentworld_cli.collect import recipe_for

SERVERS = 'servers={"a": {"command": "true"}}'


def test_a_recipe_without_command_line_options_is_used_unchanged():
    with recipe_for("smoke", "", []) as path:
        assert path == "smoke"


def test_a_domain_and_its_options_are_written_to_a_temporary_recipe():
    with recipe_for("smoke", "mcp", [SERVERS]) as path:
        recipe = load_recipe(recipe_path(path))
    smoke = load_recipe(recipe_path("smoke"))
    assert recipe.collect.domain == "mcp"
    assert recipe.collect.options == {"servers": {"a": {"command": "true"}}}
    assert recipe.collect.num_transitions == smoke.collect.num_transitions
    assert recipe.model_copy(update={"collect": smoke.collect}) == smoke
    with pytest.raises(InputError):
        load_recipe(recipe_path(path))


@pytest.mark.compute
def test_recipe_options_are_kept_for_the_same_domain_and_dropped_for_another():
    with recipe_for("smoke", "mcp", [SERVERS]) as first_path:
        with recipe_for(first_path, "mcp", ["other=1"]) as same_path:
            assert {*load_recipe(recipe_path(same_path)).collect.options} == {"servers", "other"}
        with recipe_for(first_path, "shell", []) as other_path:
            assert load_recipe(recipe_path(other_path)).collect.options == {}


def test_an_option_without_a_value_is_refused():
    with pytest.raises(InputError, match="--set takes NAME=VALUE"), recipe_for("smoke", "", ["a"]):
        pass
