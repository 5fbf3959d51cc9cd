"""Lists of agents if tags of a version were removed in the registry."""

import pytest

import make.console
from agentworld.lineage.base import Agent
from make import records


@pytest.fixture
def auditor(copy, tmp_path):
    return make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")


@pytest.mark.compute
def test_agents_after_a_version_without_a_run_tag_are_on_a_next_page(copy, auditor, tmp_path):
    registry = copy.library.registry
    for number in range(25):
        checkpoint = records.checkpoint(
            "agent", artifact=records.digest(f"weights {number}"), simulator=copy.simulator
        )
        newest = registry.register_agent(
            "another", Agent(checkpoint=checkpoint, run=f"run {number}"), tmp_path
        )
    registry.mark(newest, "run", None)
    first_page, next_page = (auditor.get(path).text for path in ("/agents", "/agents?from=25"))
    assert str(newest) not in first_page
    assert "?from=25" in first_page
    assert f'href="/agents/{copy.rival}"' in first_page
    assert f'href="/agents/{copy.agent}"' in next_page


def test_a_version_without_a_run_tag_hides_no_older_agent_of_a_simulator(
    copy, auditor, monkeypatch
):
    monkeypatch.setattr("agentworld_console.scoped_view.MOST_AGENTS", 1)
    copy.library.registry.mark(copy.rival, "run", None)
    text = auditor.get(f"/simulators/{copy.simulator}").text
    assert f'href="/agents/{copy.agent}"' in text
