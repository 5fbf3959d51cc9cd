"""The chart as pods of the tests' own Kubernetes run it, which is older than what it is for."""

from pathlib import Path

import yaml

from machines.helm_release import changed, older_chart

# Disruption budgets are under another version there, in the operator too.
_OLDER_OPERATOR = """
import sys
from agentworld_operator.main import main
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld_operator.children.engine import DISRUPTIONS
API_RESOURCES["PodDisruptionBudget"] = API_RESOURCES["PodDisruptionBudget"]._replace(
    api_version="policy/v1beta1"
)
DISRUPTIONS.pop("unhealthyPodEvictionPolicy")
sys.exit(main())
"""


def older(folder: Path, version: str = "") -> Path:
    """A copy in this folder whose operator, too, knows the tests' server; of another version."""
    folder.mkdir()
    copy = older_chart(folder)
    if version:
        release = yaml.safe_load((copy / "Chart.yaml").read_text())["version"]
        changed(copy / "Chart.yaml", f"\nversion: {release}\n", f"\nversion: {version}\n")
    words = yaml.safe_dump(["python", "-c", _OLDER_OPERATOR], default_flow_style=True, width=10_000)
    operator = copy / "templates/operator/deployment.yaml"
    changed(operator, "[python, -m, agentworld_operator.main]", words.strip())
    return copy
