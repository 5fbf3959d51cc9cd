"""Signed uses of agents, with services killed at any point."""

import shutil

import pytest

import make.agent
from agentworld.errors import InputError, NotFound
from agentworld.records.episode import new_name
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.alias import AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records


@pytest.fixture
def scene(tmp_path):
    return make.agent.registered(tmp_path)


def statement_names(scene):
    return [row.name for row in scene.ledger.attestations.find("alias")]


def copies(scene):
    return WriteOnce(Stores.of(scene.store).mirror_url).names("alias-changes/")


def test_an_agent_alias_is_signed_with_the_simulator_of_the_agents_edge(scene):
    use = scene.use()
    assert (use.target, use.alias, use.kind) == (
        "shell-agent@1",
        "shell-agent@production",
        "agent",
    )
    assert (use.simulator, use.run, use.ended) == (scene.simulator.digest, scene.agent.run, False)
    assert scene.ledger.aliases.history() == [use]
    assert statement_names(scene) == copies(scene)


def test_repeating_an_alias_move_is_not_signed_again(scene):
    use = scene.use()
    assert scene.signed(by="bob", reason="again") == use
    assert len(statement_names(scene)) == 1


@pytest.mark.compute
def test_moving_an_alias_back_to_an_earlier_version_is_signed_again(scene):
    other = make.agent.registered(scene.store, scene.registry, "other")
    assert [agent.use().target[-1] for agent in (scene, other, scene)] == ["1", "2", "1"]
    assert len(statement_names(scene)) == 3


@pytest.mark.compute
def test_an_ended_alias_keeps_its_version_and_can_be_moved_again(scene):
    scene.use()
    end = scene.retire(by="bob")
    assert (end.target, end.ended, end.set_by) == ("shell-agent@1", True, "bob")
    assert scene.retire() == end
    assert not scene.use().ended
    assert len(statement_names(scene)) == 3


def test_ending_a_missing_alias_is_refused(scene):
    with pytest.raises(NotFound, match="there is no alias 'shell-agent@production'"):
        scene.retire()


@pytest.mark.parametrize(
    ("name", "diff"),
    [
        ("another-agent", {}),
        (make.agent.NAME, {"artifact": records.digest("another")}),
        (make.agent.NAME, {"run": "another"}),
    ],
    ids=["name", "artifact", "run"],
)
def test_an_alias_of_an_agent_without_a_signed_edge_is_refused(scene, name, diff):
    with pytest.raises(NotFound, match="no signed statement says which simulator made"):
        scene.moves.move(
            f"{name}@shop", scene.move(agent=scene.version(**diff)), None, new_name(), dry_run=False
        )
    assert statement_names(scene) == copies(scene) == []


def test_an_alias_name_of_another_kind_is_refused(scene):
    simulator = AliasMove(kind="simulator", simulator=scene.simulator.digest, by="ada")
    for alias, move in (("shop", scene.move()), ("shell-agent@shop", simulator)):
        with pytest.raises(InputError, match="is not an alias of"):
            scene.moves.move(alias, move, None, new_name(), dry_run=False)
    scene.use()
    with pytest.raises(NotFound):
        scene.ledger.aliases.resolve("shell-agent@production")


@pytest.mark.compute
def test_alias_names_are_case_sensitive(scene):
    other = make.agent.registered(scene.store, scene.registry, name=make.agent.NAME.upper())
    assert scene.use() != other.use()
    other.retire()
    are_ended = [change.ended for change in scene.ledger.aliases.history("shell-agent@production")]
    assert are_ended == [False]


@pytest.mark.parametrize("next_change", ["the same", "another"])
def test_the_next_alias_change_writes_a_missing_copy(scene, next_change):
    scene.use()
    shutil.rmtree(scene.store / "mirror/alias-changes")
    assert copies(scene) == []
    if next_change == "the same":
        scene.use()
    else:
        scene.retire()
    assert sorted(statement_names(scene)) == copies(scene)


def test_an_evaluation_in_another_simulator_does_not_dispute_the_edge(scene):
    """The evaluation ends with the weights that it began with."""
    opening = RunOpening(agent="a", starting_weights=scene.agent.artifact, purpose="evaluation")
    ledger = scene.ledger
    other_run = ledger.open_run(opening, records.digest("next simulator"))
    ledger.close_run(other_run.id, RunClosing(final_weights=scene.agent.artifact))
    fields = {"starting_weights": make.agent.STARTED, "simulator": scene.simulator.digest}
    claim = Claim(agent=scene.ref.name, artifact=scene.agent.artifact, **fields)
    assert scene.statement_signer.edge(ledger.run(scene.agent.run), claim).edge.grade == "observed"


def test_a_training_in_another_simulator_disputes_the_edge(scene):
    ledger = scene.ledger
    opening = RunOpening(agent="a", starting_weights=make.agent.STARTED)
    other_run = ledger.open_run(opening, records.digest("another simulator"))
    ledger.close_run(other_run.id, RunClosing(final_weights=scene.agent.artifact))
    fields = {"starting_weights": make.agent.STARTED, "simulator": scene.simulator.digest}
    claim = Claim(agent=scene.ref.name, artifact=scene.agent.artifact, **fields)
    edge = scene.statement_signer.edge(ledger.run(scene.agent.run), claim).edge
    assert (edge.grade, edge.reasons) == (
        "disputed",
        (f"run {other_run.id} made the same weights in another simulator",),
    )
