"""The operator before a server that is older than what it is made for.

The tests' own Kubernetes is 1.20, which has disruption budgets as policy/v1beta1 alone.
"""

import sys

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld_operator.main import main
from make.operator import OLDER_BUDGETS

API_RESOURCES["PodDisruptionBudget"] = OLDER_BUDGETS

if __name__ == "__main__":
    sys.exit(main())
