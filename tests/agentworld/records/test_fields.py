import pytest

from agentworld.recipes import Recipe
from agentworld.recipes.train import AgentRlRecipe
from agentworld.records.base import Record
from agentworld.records.fields import describe_fields, record_in
from agentworld.records.gate import Gate

FIELDS = {field.name: field for field in describe_fields(Recipe)}


class _Gates(Record):
    by_name: dict[str, Gate] | None


@pytest.mark.parametrize(
    ("name", "type_", "default", "unit"),
    [
        ("cpt.learning_rate", "number, > 0", 1e-5, ""),
        ("sft.sequence_tokens", "whole number or null, > 0", 8192, "tokens"),
        ("cpt.adam_betas", "list of 2: number, number", [0.9, 0.95], ""),
        ("cpt.lora", "section or null", None, ""),
        ("cpt.lora.rank", "whole number, > 0, <= 512", 32, ""),
        ("engine.dtype", "`float32` or `bfloat16` or `float16`", "float32", ""),
        ("rl.reward.endpoint.timeout_seconds", "number, > 0", 300.0, "seconds"),
        ("evaluate.num_episodes", "whole number, > 0", 80, "episodes"),
        ("simulate.domains", "mapping of text to text or null", {}, ""),
        ("prepare.redact", "yes or no", True, ""),
        ("agent.rl.num_steps", "whole number, > 0", AgentRlRecipe().num_steps, "steps"),
    ],
)
def test_a_field_is_described_with_its_type_default_and_unit(name, type_, default, unit):
    field = FIELDS[name]
    assert (field.type, field.default, field.unit) == (type_, default, unit)
    assert not field.required


def test_the_recipe_name_and_the_keys_of_corpora_and_gates_are_required():
    required = [name for name, field in FIELDS.items() if field.required]
    corpus = ["cpt.corpora.NAME.address", "cpt.corpora.NAME.weight"]
    assert required == ["name", *corpus, "gate[].metric", "gate[].least"]


def test_every_field_has_a_meaning():
    assert [name for name, field in FIELDS.items() if not field.meaning] == []


def test_the_record_at_a_path_is_found_through_sections_lists_and_mappings():
    assert record_in(Recipe, ("gate", 0)) is Gate
    assert record_in(Recipe, ("agent", "rl")) is AgentRlRecipe
    assert record_in(Recipe, ("simulate", "domains")) is None
    assert record_in(_Gates, ("by_name", "mine")) is Gate
    assert record_in(_Gates, ("by_name", "mine", "metric")) is None
