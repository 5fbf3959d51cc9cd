"""The guide to evaluation lists the existing metrics and baselines, and the recipe's defaults."""

import re
from pathlib import Path

import yaml

from agentworld.evaluate.metrics import metric_names
from agentworld.evaluate.rubric import JUDGE_METRICS
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.steps.evaluate import BASELINES

GUIDE = (Path(__file__).parents[3] / "docs/guides/evaluation.md").read_text()


def rows_under(heading: str) -> list[str]:
    """The first column of the table of a section."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)`", section, re.MULTILINE)


def test_the_guide_names_every_metric_and_every_baseline():
    assert sorted(rows_under("Metrics")) == sorted([*metric_names(), "embedding"])
    assert rows_under("Baselines") == [*BASELINES]


def test_the_guide_names_every_metric_of_a_judge():
    assert rows_under("Scores of a judge") == [*JUDGE_METRICS]


def test_the_guide_shows_the_default_recipe_and_a_recipe_with_a_judge():
    texts = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    default_recipe, recipe_with_judge = (
        EvaluateRecipe.model_validate(yaml.safe_load(text)["evaluate"]) for text in texts
    )
    assert default_recipe == EvaluateRecipe()
    assert default_recipe.judge is None
    assert recipe_with_judge.judge
    assert recipe_with_judge.judge.key_from == "JUDGE_KEY"
