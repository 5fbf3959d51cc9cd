import subprocess
import sys
from pathlib import Path

import pytest

from agentworld.domains.base import domain_of, is_match, verdict_of

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from agentworld.domains.base import Start, domain_of
domain = domain_of(sys.argv[1])
domain.prompt(Start(domain=domain.name)), domain.question(0), domain.tags(Start(domain="x"), [])
print(*(name for name in sys.modules if name.endswith((".live", ".sandbox", ".session"))))
"""


@pytest.mark.waits
@pytest.mark.parametrize("name", ["mcp", "text", "screen", "shell"])
def test_loading_a_domain_imports_no_live_environment_module(name):
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, name],
        env={"PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "agentworld.domains.live" not in process.stdout
    assert "session" not in process.stdout


class StubDomain:
    """A domain with fixed verdicts."""

    def __init__(self, **verdicts):
        self._verdicts = verdicts

    def verify(self, _predicted, _truth):
        return self._verdicts


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ({}, None),
        ({"errors": None}, None),
        ({"errors": True, "consistency": None}, True),
        ({"errors": True, "consistency": False}, False),
        ({"errors": True, "consistency": True, "controllability": True}, True),
    ],
)
def test_a_verdict_is_true_if_every_rule_with_a_verdict_passes(verdicts, verdict):
    assert verdict_of(StubDomain(**verdicts), "a", "a") is verdict


@pytest.mark.parametrize(
    ("name", "observations"),
    [
        ("mcp", ['{"item":"rimo"}', "<error>\nUnknown item\n</error>"]),
        ("screen", ["a"]),
        ("shell", ["kolu\n[0] ~", "[1] ~"]),
        ("terminal", ["$ cat rimo.txt\nkolu\n$", "$ cat a\ncat: a: No such file or directory\n$"]),
        ("text", ["a"]),
    ],
)
def test_a_domain_names_the_axes_on_which_its_rules_have_verdicts(name, observations):
    domain = domain_of(name)
    verdicts = [domain.verify(observation, observation) for observation in observations]
    assert {axis for axes in verdicts for axis in axes} == set(domain.axes)


def test_a_match_uses_the_comparison_of_the_domain():
    assert is_match(domain_of("shell"), "a\n[0] ~\n", "a\n[0] ~")
    assert not is_match(domain_of("text"), "a\n", "a")
