"""Agents have to be revalidated after the alias of their simulator moves."""

import shutil
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import make.agent
from agentworld.audit.checks.store import verify_everything
from agentworld.audit.checks.validation import validation_problems
from agentworld.audit.questions.agent import audit_agent
from agentworld.audit.questions.agents import audit_agents
from agentworld.audit.questions.revalidation import AgentsInUse, UseState, moved_on
from agentworld.records.statements.alias import AliasChange, Canary
from agentworld.records.statements.validation import Validation
from agentworld.signing.envelope import attest
from agentworld.signing.keys import ensure_signer
from make import records
from make.special import exchange
from make.template import copied
from waiting import outcome

pytestmark = pytest.mark.compute

OLD, NEXT, LAST = records.digest("old"), records.digest("next"), records.digest("last")
OPENING_TIME = "2026-01-10T00:00:00.000+00:00"


def moves(*entries):
    """The moves of one alias, each given by a day of January, a target and a canary."""
    changes = []
    for day, simulator, *canary in entries:
        changes.append(
            AliasChange(
                alias="stable",
                simulator=simulator or OLD,
                set_by="ada",
                at=f"2026-01-{day:02}T12:00:00.000+00:00",
                canary=Canary(simulator=canary[0], percent=10) if canary else None,
                ended=simulator is None,
            )
        )
    return changes


HISTORIES = {
    "it moved on": ([(1, OLD), (20, NEXT)], 20),
    "it stands": ([(1, OLD)], None),
    "it moved on before the run": ([(1, OLD), (5, NEXT)], None),
    "and again after it": ([(1, OLD), (5, NEXT), (20, LAST)], None),
    "it moved twice": ([(1, OLD), (20, NEXT), (25, LAST)], 25),
    "it moved back": ([(1, OLD), (20, NEXT), (25, OLD)], None),
    "it meant it later": ([(1, NEXT), (15, OLD), (20, LAST)], 20),
    "it never meant it": ([(1, NEXT), (20, LAST)], None),
    "it was taken away": ([(1, OLD), (20, NEXT), (25, None)], None),
    "it was taken away between": ([(1, OLD), (20, None), (25, NEXT)], 25),
    "the move was told twice": ([(1, OLD), (20, NEXT), (25, NEXT)], 20),
    "another is tried": ([(1, OLD), (20, OLD, NEXT)], None),
    "it is tried still": ([(1, NEXT, OLD), (20, LAST, OLD)], None),
    "its trial ended": ([(1, NEXT, OLD), (20, NEXT)], 20),
    "what was tried is meant": ([(1, NEXT, OLD), (20, OLD)], None),
    "another is tried after the move": ([(1, OLD), (20, NEXT), (25, NEXT, LAST)], 20),
}


@pytest.mark.parametrize(("entries", "day"), HISTORIES.values(), ids=HISTORIES)
def test_moved_on_finds_the_move_away_from_the_training_simulator(entries, day):
    move = moved_on(moves(*entries), OLD, OPENING_TIME)
    assert (move and int(move.at[8:10])) == day


@pytest.mark.parametrize("opening_time", ["", "yesterday", "2026-01-10T00:00:00"])
def test_every_move_counts_if_the_opening_time_of_the_run_is_invalid(opening_time):
    assert moved_on(moves((1, OLD), (5, NEXT)), OLD, opening_time)


@given(st.lists(st.sampled_from([OLD, NEXT, LAST, None]), min_size=1, max_size=12))
def test_moved_on_returns_the_move_to_the_current_target_of_the_alias(meant):
    history = moves(*((day, simulator) for day, simulator in enumerate(meant, start=11)))
    move = moved_on(history, OLD, OPENING_TIME)
    is_due = meant[-1] not in (OLD, None) and OLD in meant
    assert (move is not None) == is_due
    if move:
        position = history.index(move)
        assert set(meant[position:]) == {meant[-1]}
        assert position == 0 or meant[position - 1] != meant[-1]


@pytest.fixture
def agent(tmp_path):
    """An agent in use, whose simulator's alias was moved on."""
    return copied(build_agent, tmp_path)


def build_agent(store):
    agent = make.agent.registered(store)
    agent.use()
    agent.moved("stable", agent.simulator.digest, NEXT)
    return agent


def state(agent):
    (summary,) = audit_agents(agent.sources).agents
    assert summary.revalidate == audit_agent(agent.ref, agent.sources).revalidate
    return summary.state


def test_an_agent_in_use_needs_revalidation_until_validated_in_the_next_simulator(agent):
    (summary,) = audit_agents(agent.sources).agents
    (reason,) = summary.revalidate
    assert (reason.alias, reason.trained_in, reason.simulator) == (
        "stable",
        agent.simulator.digest,
        NEXT,
    )
    assert reason.at == agent.ledger.aliases.history()[-1].at
    for other in (agent.simulator.digest, LAST):
        agent.validated(other)
        assert state(agent) == "revalidate"
    agent.validated(NEXT)
    assert state(agent) == "current"


def test_the_validation_of_another_agent_does_not_count(agent):
    make.agent.registered(agent.store, agent.registry, "other").validated(NEXT)
    states = [summary.state for summary in audit_agents(agent.sources).agents]
    assert states == ["revalidate", None]


def reason(agent):
    (summary,) = audit_agents(agent.sources).agents
    return summary.revalidate[0]


def test_a_changed_validation_report_does_not_count_and_is_reported(agent):
    report = agent.validated(NEXT) / "report.json"
    records.agent_report(simulator=NEXT, live_steps=1).write(report)
    assert state(agent) == "revalidate"
    assert (
        reason(agent).problem == f"the live validation in {report.parent} was changed; restore it"
    )
    assert str(reason(agent)).endswith("was changed; restore it")
    assert audit_agents(agent.sources).problems == (reason(agent).problem,)


@pytest.mark.parametrize("file", ["report.json", "receipt.json"])
def test_a_garbled_validation_does_not_count_and_is_reported(agent, file):
    assert audit_agents(agent.sources).agents[0].revalidate[0].problem is None
    agent.validated(NEXT)
    (path,) = agent.store.glob(f"steps/validate/*/{file}")
    path.write_text("{")
    assert state(agent) == "revalidate"
    assert "a live validation cannot be read" in reason(agent).problem
    assert str(path) in str(reason(agent))


@pytest.mark.parametrize("file", ["report.json", "receipt.json"])
def test_a_pipe_in_place_of_a_validation_file_is_reported_without_blocking(agent, file):
    exchange(agent.validated(NEXT) / file)
    problems = outcome(lambda: list(validation_problems(agent.sources)))
    assert isinstance(problems, list)
    (problem,) = problems
    assert f"{file}: it is a pipe and not a regular file" in problem


def test_an_unsigned_validation_does_not_count_and_is_reported_as_unsigned(agent):
    agent.validated(NEXT, signed=False)
    assert state(agent) == "revalidate"
    assert reason(agent).problem == "the existing validation is unsigned"
    assert audit_agents(agent.sources).problems == ()
    agent.validated(NEXT, live_steps=800)
    assert state(agent) == "current"


def test_a_validation_in_the_ledger_counts_without_its_files(agent):
    shutil.rmtree(agent.validated(NEXT))
    assert state(agent) == "current"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM attestations WHERE kind = 'validation'", "is gone from the ledger"),
        (
            "UPDATE attestations SET simulator = '' WHERE kind = 'validation'",
            "its row differs from",
        ),
    ],
)
def test_a_changed_or_deleted_validation_statement_does_not_count_and_is_reported(
    agent, statement, problem
):
    agent.validated(NEXT)
    make.agent.lose(agent, statement)
    assert state(agent) == "revalidate"
    (sentence,) = audit_agents(agent.sources).problems
    assert problem in sentence
    assert agent.agent.artifact in sentence


def test_other_problems_are_reported_beside_an_unreadable_validation_statement(agent):
    report = agent.validated(NEXT) / "report.json"
    garbled = "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT) WHERE kind = 'validation'"
    make.agent.lose(agent, garbled)
    records.agent_report(simulator=NEXT, live_steps=1).write(report)
    (agent.store / "model/model.safetensors").write_bytes(b"other")
    problems = verify_everything(agent.sources).problems
    assert any(
        "does not verify: this is not an envelope of ours" in problem for problem in problems
    )
    assert any(problem.startswith("shell-agent@1: mirror differs in files") for problem in problems)


def test_the_agents_audit_reports_an_alias_row_changed_back_to_the_old_simulator(agent):
    """By the rows alone, the agent is `current`."""
    make.agent.lose(agent, f"UPDATE aliases SET simulator = '{agent.simulator.digest}'")
    assert state(agent) == "current"
    (problem,) = audit_agents(agent.sources).problems
    assert problem.startswith(f"it was signed that alias 'stable' meant {NEXT} from ")


def test_a_validation_signed_with_an_untrusted_key_does_not_count(agent):
    signer = ensure_signer(agent.store / "keys/stranger")
    report = records.agent_report(simulator=NEXT)
    fields = {"artifact": agent.agent.artifact, "imitated": NEXT, "step": "x", "at": OPENING_TIME}
    attestation = attest(Validation(report=report, **fields), signer)
    agent.ledger.attestations.add(attestation)
    assert state(agent) == "revalidate"
    (problem,) = audit_agents(agent.sources).problems
    assert "is not trusted" in problem


def test_a_retired_agent_needs_no_revalidation(agent):
    agent.retire()
    assert state(agent) is None


def test_a_move_of_an_agents_own_alias_needs_no_revalidation(tmp_path):
    agent = make.agent.registered(tmp_path)
    agent.use()
    terms = {"kind": "agent", "agent": agent.version(version=2)}
    agent.ledger.aliases.set("shell-agent@production", NEXT, "ada", **terms)
    assert state(agent) == "current"


def test_agents_in_use_are_read_as_of_the_given_time(agent):
    def use(at):
        sources = agent.sources.as_of(at)
        uses = AgentsInUse.read(sources.ledger, sources.evidence, sources.store)
        return uses.of(agent.ref, agent.agent)

    assert use(datetime(2020, 1, 1, tzinfo=UTC)) == UseState()
    current = use(datetime.now(UTC))
    assert current.aliases == ("production",)
    assert current.revalidate
    time_between = datetime.now(UTC)
    time.sleep(0.002)  # statements have times in milliseconds
    agent.validated(NEXT)
    assert use(time_between).revalidate[0].problem is None
    assert not use(None).revalidate


def test_an_agent_needs_no_revalidation_after_the_alias_moves_back(agent):
    agent.moved("stable", agent.simulator.digest)
    assert state(agent) == "current"


def test_the_agents_audit_shows_grade_live_success_simulator_and_uses(agent):
    agent.validated(agent.simulator.digest)
    audit = audit_agents(agent.sources)
    (summary,) = audit.agents
    assert (summary.agent, summary.grade, summary.live_success) == (
        "shell-agent@1",
        "observed",
        0.5,
    )
    assert (summary.simulator, summary.in_use_as) == (agent.simulator.digest, ("production",))
    assert audit.problems == ()


def test_no_agent_is_in_use_in_a_store_without_keys(agent):
    (summary,) = audit_agents(agent.sources._replace(evidence=None)).agents
    assert (summary.grade, summary.in_use_as, summary.state) == (None, (), None)
