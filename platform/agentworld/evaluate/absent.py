"""Says why an evaluation has no value of a metric that its recipe names."""

from collections.abc import Container

from agentworld.evaluate.metrics.base import EMBEDDING
from agentworld.recipes.serve import EvaluateRecipe, NightlyRecipe


def absent_metrics(
    recipe: EvaluateRecipe | NightlyRecipe, *measured: Container[str]
) -> dict[str, str]:
    """By metric, why none of these scores has a value of it."""
    return {
        name: _reason(name, recipe.embedding_model)
        for name in recipe.metrics
        if not any(name in names for names in measured)
    }


def _reason(name: str, embedding_model: str | None) -> str:
    if name == EMBEDDING and not embedding_model:
        return "the recipe's embedding_model names no folder"
    return "no observation of these episodes has a value of it"
