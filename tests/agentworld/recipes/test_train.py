"""The fields of training recipes."""

import pytest

from agentworld.recipes.train import GroupRlRecipe, NextTokenRecipe
from agentworld.records.fields import field_words

NOT_REPORTED = {
    NextTokenRecipe: [
        *("learning_rate", "adam_betas", "weight_decay", "max_gradient_norm", "tokens_per_batch"),
        *("epochs", "warmup_share", "decay_share"),
    ],
    GroupRlRecipe: [
        *("learning_rate", "prompts_per_step", "group_size", "temperature", "max_tokens"),
    ],
}
RWML_VALUES = {
    (NextTokenRecipe, "learning_rate"): "2e-6",
    (NextTokenRecipe, "tokens_per_batch"): "32 samples",
    (NextTokenRecipe, "epochs"): "2 epochs",
    (GroupRlRecipe, "learning_rate"): "1e-6",
    (GroupRlRecipe, "group_size"): "8 or 16",
}
"""arXiv 2602.05842, table A2."""


@pytest.mark.parametrize(
    ("recipe", "field"),
    [(recipe, name) for recipe, names in NOT_REPORTED.items() for name in names],
)
def test_fields_the_paper_omits_are_described_as_not_reported_with_any_rwml_value(recipe, field):
    description = field_words(recipe)[field]
    assert "not reported" in description.lower()
    if (recipe, field) in RWML_VALUES:
        assert "RWML" in description
        assert RWML_VALUES[recipe, field] in description
