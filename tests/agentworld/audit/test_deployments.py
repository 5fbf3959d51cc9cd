import pytest

import make_agent
from agentworld.audit.deployments import deployment_problems, deployments, in_use
from agentworld.audit.everything import verify_everything
from agentworld.lineage.base import WorldModel


@pytest.fixture
def made(tmp_path):
    """In use as `production`, and as nothing else any more."""
    made = make_agent.registered(tmp_path)
    made.use()
    made.use("trial")
    made.notary.end_deployment(made.ref.name, "trial", "ada", None)
    made.registry.remove_alias(made.ref.name, "trial")
    return made


def problems(made):
    return [*deployment_problems(made.sources)]


def used(made):
    told = made.sources
    return [each.alias for each in in_use(deployments(told.ledger.attestations, told.evidence))]


def test_what_is_as_it_was_signed_is_no_problem(made):
    assert used(made) == ["production"]
    assert problems(made) == []


def test_an_alias_that_was_moved_in_the_registry_is_told(made):
    other = make_agent.registered(made.store, made.registry, "other")
    made.registry.set_alias(other.ref, "production")
    assert problems(made) == [
        "the alias production of terminal-agent is version 2 in the registry, and terminal-agent@1"
        " is in use as that; find out who moved it, or use it again"
    ]


def test_an_alias_that_was_deleted_in_the_registry_is_told(made):
    made.registry.remove_alias(made.ref.name, "production")
    assert problems(made) == [
        "the alias production of terminal-agent is gone from the registry, and terminal-agent@1 is"
        " in use as that; find out who deleted it, or use it again"
    ]


@pytest.mark.parametrize("alias", ["trial", "new"])
def test_an_alias_that_nobody_signed_is_told(made, alias):
    made.registry.set_alias(made.ref, alias)
    assert problems(made) == [
        f"the alias {alias} of terminal-agent is version 1 in the registry, and nothing is in use"
        " so; find out who moved it, or use it again"
    ]


def test_an_alias_of_what_is_no_agent_is_none_of_ours(made, tmp_path):
    what = WorldModel(stages=(made.agent.checkpoint,), report=made.agent.artifact)
    made.registry.set_alias(made.registry.register_world_model("worlds", what, tmp_path), "best")
    assert problems(made) == []


def test_a_row_that_was_removed_is_told_by_its_copy(made):
    name = "agent-deployments/terminal-agent/trial/000002.dsse.json"
    make_agent.lose(made, "DELETE FROM attestations WHERE name = ?", name)
    assert problems(made)[0] == f"the deployment {name} is gone from the ledger; restore it"


@pytest.mark.parametrize(
    "change",
    [
        "simulator = 'sha256:00'",
        "at = '2020-01-01T00:00:00+00:00'",
        "envelope = (SELECT envelope FROM attestations WHERE name LIKE '%trial/000001%')",
    ],
)
def test_a_row_that_was_changed_counts_no_more_and_is_told(made, change):
    name = "agent-deployments/terminal-agent/production/000001.dsse.json"
    make_agent.lose(made, f"UPDATE attestations SET {change} WHERE name = ?", name)
    assert used(made) == []
    assert f"the deployment {name} does not verify" in problems(made)[0]


def test_a_row_that_was_moved_to_another_number_is_told(made):
    before, after = (
        f"agent-deployments/terminal-agent/trial/{number}.dsse.json"
        for number in ("000002", "000003")
    )
    make_agent.lose(made, "UPDATE attestations SET name = ? WHERE name = ?", after, before)
    told = " ".join(problems(made))
    assert f"{after} does not verify" in told
    assert f"{before} is gone from the ledger" in told


def test_a_verification_of_everything_tells_of_them_too(made):
    before = verify_everything(made.sources).problems
    assert not [each for each in before if each.startswith("run ")]
    made.registry.set_alias(made.ref, "shadow")
    (problem,) = problems(made)
    assert set(verify_everything(made.sources).problems) == {*before, problem}
