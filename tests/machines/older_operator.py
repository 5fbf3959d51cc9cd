"""The operator with a server that is older than it supports.

The tests' own Kubernetes is 1.20, which has disruption budgets only as policy/v1beta1, without a
policy for pods that are not ready.
"""

import sys

from agentworld_operator.main import main
from make.operator import older_budgets


def run() -> None:
    """Ends with the operator's exit status."""
    with older_budgets():
        sys.exit(main())


if __name__ == "__main__":
    run()
