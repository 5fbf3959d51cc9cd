"""The chart for the pods of the tests' own Kubernetes, which is older than the supported
versions.
"""

from pathlib import Path

import yaml

from machines.helm_release import changed, older_chart

# The older server has another API version of disruption budgets, also in the operator.
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
    """A copy of the chart in this folder whose operator supports the tests' server; with this
    version.
    """
    folder.mkdir()
    copy = older_chart(folder)
    if version:
        release = yaml.safe_load((copy / "Chart.yaml").read_text())["version"]
        changed(copy / "Chart.yaml", f"\nversion: {release}\n", f"\nversion: {version}\n")
    words = yaml.safe_dump(["python", "-c", _OLDER_OPERATOR], default_flow_style=True, width=10_000)
    operator = copy / "templates/operator/deployment.yaml"
    changed(operator, "[python, -m, agentworld_operator.main]", words.strip())
    return copy
