"""Our chart as the tests' own Kubernetes takes it, which is older than what the chart is for."""

import re
import shutil
from pathlib import Path

import yaml

CHART = Path(__file__).parents[1] / "charts/agentworld"

# It has disruption budgets under another version, in the operator too.
_OLDER_OPERATOR = """
import sys
from agentworld_operator.main import main
from agentworld_operator.resources.places import PLACES
PLACES["PodDisruptionBudget"] = PLACES["PodDisruptionBudget"]._replace(api_version="policy/v1beta1")
sys.exit(main())
"""


def older(folder: Path, version: str = "") -> Path:
    """A copy of the chart in a folder, perhaps of another version."""
    copy = folder / f"agentworld-{version or 'now'}"
    shutil.copytree(CHART, copy)
    _rewrite(copy / "Chart.yaml", r"kubeVersion: .*\n", "")
    if version:
        _rewrite(copy / "Chart.yaml", r"\nversion: .*\n", f"\nversion: {version}\n")
    for path in (copy / "templates").rglob("*.yaml"):
        _rewrite(path, r"\bpolicy/v1\b", "policy/v1beta1")
    words = yaml.safe_dump(
        ["python", "-c", _OLDER_OPERATOR], default_flow_style=True, width=10_000
    ).strip()
    operator = copy / "templates/operator/deployment.yaml"
    _rewrite(operator, r"\[python, -m, agentworld_operator.main\]", words)
    return copy


def _rewrite(path: Path, pattern: str, words: str) -> None:
    path.write_text(re.sub(pattern, lambda _: words, path.read_text()))
