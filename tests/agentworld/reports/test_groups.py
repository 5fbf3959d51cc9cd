from pathlib import Path

from agentworld.reports.groups import BASELINES, explain_baselines

ROOT = Path(__file__).parents[3]


def test_the_baselines_of_a_report_are_explained_as_in_the_guide():
    guide = (ROOT / "docs/guides/evaluation.md").read_text()
    for name, prediction in BASELINES.items():
        assert f"| `{name}` | {prediction} |" in guide


def test_an_unknown_baseline_is_not_explained():
    explanation = explain_baselines(["copy", "of a package", "repeat"])
    assert explanation == (
        "copy predicts the last observation again;"
        " repeat predicts what the same action showed earlier in the episode"
    )
