"""A simulator's alias moves, and its agents have to be revalidated."""

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
OPENED = "2026-01-10T00:00:00.000+00:00"


def moves(*told):
    """The moves of one alias: a day of January, the target, and its canary."""
    changes = []
    for day, simulator, *canary in told:
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


@pytest.mark.parametrize(("told", "day"), HISTORIES.values(), ids=HISTORIES)
def test_moved_on_finds_the_move_away_from_the_training_simulator(told, day):
    found = moved_on(moves(*told), OLD, OPENED)
    assert (found and int(found.at[8:10])) == day


@pytest.mark.parametrize("opened", ["", "yesterday", "2026-01-10T00:00:00"])
def test_every_move_counts_if_the_opening_time_of_the_run_is_invalid(opened):
    assert moved_on(moves((1, OLD), (5, NEXT)), OLD, opened)


@given(st.lists(st.sampled_from([OLD, NEXT, LAST, None]), min_size=1, max_size=12))
def test_moved_on_returns_the_move_to_the_current_target_of_the_alias(meant):
    history = moves(*((day, simulator) for day, simulator in enumerate(meant, start=11)))
    found = moved_on(history, OLD, OPENED)
    due = meant[-1] not in (OLD, None) and OLD in meant
    assert (found is not None) == due
    if found:
        place = history.index(found)
        assert set(meant[place:]) == {meant[-1]}
        assert place == 0 or meant[place - 1] != meant[-1]


@pytest.fixture
def made(tmp_path):
    """An agent in use; the name that its simulator has moves on."""
    return copied(moved_on_from, tmp_path)


def moved_on_from(store):
    made = make.agent.registered(store)
    made.use()
    made.moved("stable", made.simulator.digest, NEXT)
    return made


def state(made):
    (found,) = audit_agents(made.sources).agents
    assert found.revalidate == audit_agent(made.ref, made.sources).revalidate
    return found.state


def test_an_agent_in_use_needs_revalidation_until_validated_in_the_next_simulator(made):
    (found,) = audit_agents(made.sources).agents
    (reason,) = found.revalidate
    assert (reason.alias, reason.trained_in, reason.simulator) == (
        "stable",
        made.simulator.digest,
        NEXT,
    )
    assert reason.at == made.ledger.aliases.history()[-1].at
    for other in (made.simulator.digest, LAST):
        made.validated(other)
        assert state(made) == "revalidate"
    made.validated(NEXT)
    assert state(made) == "current"


def test_the_validation_of_another_agent_does_not_count(made):
    make.agent.registered(made.store, made.registry, "other").validated(NEXT)
    states = [each.state for each in audit_agents(made.sources).agents]
    assert states == ["revalidate", None]


def reason(made):
    (found,) = audit_agents(made.sources).agents
    return found.revalidate[0]


def test_a_changed_validation_report_does_not_count_and_is_reported(made):
    report = made.validated(NEXT) / "report.json"
    records.agent_report(simulator=NEXT, live_steps=1).write(report)
    assert state(made) == "revalidate"
    assert reason(made).problem == f"the live validation in {report.parent} was changed; restore it"
    assert str(reason(made)).endswith("was changed; restore it")
    assert audit_agents(made.sources).problems == (reason(made).problem,)


@pytest.mark.parametrize("file", ["report.json", "receipt.json"])
def test_a_garbled_validation_does_not_count_and_is_reported(made, file):
    assert audit_agents(made.sources).agents[0].revalidate[0].problem is None
    made.validated(NEXT)
    (found,) = made.store.glob(f"steps/validate/*/{file}")
    found.write_text("{")
    assert state(made) == "revalidate"
    assert "a live validation cannot be read" in reason(made).problem
    assert str(found) in str(reason(made))


@pytest.mark.parametrize("file", ["report.json", "receipt.json"])
def test_a_pipe_in_place_of_a_validation_file_is_reported_without_blocking(made, file):
    exchange(made.validated(NEXT) / file)
    found = outcome(lambda: list(validation_problems(made.sources)))
    assert isinstance(found, list)
    (problem,) = found
    assert f"{file}: it is a pipe and not a regular file" in problem


def test_an_unsigned_validation_does_not_count_and_is_reported_as_unsigned(made):
    made.validated(NEXT, signed=False)
    assert state(made) == "revalidate"
    assert reason(made).problem == "the existing validation is unsigned"
    assert audit_agents(made.sources).problems == ()
    made.validated(NEXT, live_steps=800)
    assert state(made) == "current"


def test_a_validation_in_the_ledger_counts_without_its_files(made):
    shutil.rmtree(made.validated(NEXT))
    assert state(made) == "current"


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
    made, statement, problem
):
    made.validated(NEXT)
    make.agent.lose(made, statement)
    assert state(made) == "revalidate"
    (told,) = audit_agents(made.sources).problems
    assert problem in told
    assert made.agent.artifact in told


def test_other_problems_are_reported_beside_an_unreadable_validation_statement(made):
    report = made.validated(NEXT) / "report.json"
    garbled = "UPDATE attestations SET envelope = CAST(x'ff' AS TEXT) WHERE kind = 'validation'"
    make.agent.lose(made, garbled)
    records.agent_report(simulator=NEXT, live_steps=1).write(report)
    (made.store / "model/model.safetensors").write_bytes(b"other")
    problems = verify_everything(made.sources).problems
    assert any(
        "does not verify: this is not an envelope of ours" in problem for problem in problems
    )
    assert any(each.startswith("shell-agent@1: mirror differs in files") for each in problems)


def test_the_agents_audit_reports_an_alias_row_changed_back_to_the_old_simulator(made):
    """By the rows, the agent would be `current`."""
    make.agent.lose(made, f"UPDATE aliases SET simulator = '{made.simulator.digest}'")
    assert state(made) == "current"
    (problem,) = audit_agents(made.sources).problems
    assert problem.startswith(f"it was signed that alias 'stable' meant {NEXT} from ")


def test_a_validation_signed_with_an_untrusted_key_does_not_count(made):
    signer = ensure_signer(made.store / "keys/stranger")
    report = records.agent_report(simulator=NEXT)
    known = {"artifact": made.agent.artifact, "imitated": NEXT, "step": "x", "at": OPENED}
    told = attest(Validation(report=report, **known), signer)
    made.ledger.attestations.add(told)
    assert state(made) == "revalidate"
    (problem,) = audit_agents(made.sources).problems
    assert "is not trusted" in problem


def test_a_retired_agent_needs_no_revalidation(made):
    made.retire()
    assert state(made) is None


def test_a_move_of_an_agents_own_alias_needs_no_revalidation(tmp_path):
    made = make.agent.registered(tmp_path)
    made.use()
    terms = {"kind": "agent", "agent": made.version(version=2)}
    made.ledger.aliases.set("shell-agent@production", NEXT, "ada", **terms)
    assert state(made) == "current"


def test_agents_in_use_are_read_as_of_the_given_time(made):
    def use(at):
        sources = made.sources.as_of(at)
        uses = AgentsInUse.read(sources.ledger, sources.evidence, sources.store)
        return uses.of(made.ref, made.agent)

    assert use(datetime(2020, 1, 1, tzinfo=UTC)) == UseState()
    now = use(datetime.now(UTC))
    assert now.aliases == ("production",)
    assert now.revalidate
    between = datetime.now(UTC)
    time.sleep(0.002)  # statements tell milliseconds
    made.validated(NEXT)
    assert use(between).revalidate[0].problem is None
    assert not use(None).revalidate


def test_an_agent_needs_no_revalidation_after_the_alias_moves_back(made):
    made.moved("stable", made.simulator.digest)
    assert state(made) == "current"


def test_the_agents_audit_shows_grade_live_success_simulator_and_uses(made):
    made.validated(made.simulator.digest)
    audited = audit_agents(made.sources)
    (found,) = audited.agents
    assert (found.agent, found.grade, found.live_success) == ("shell-agent@1", "observed", 0.5)
    assert (found.simulator, found.in_use_as) == (made.simulator.digest, ("production",))
    assert audited.problems == ()


def test_no_agent_is_in_use_in_a_store_without_keys(made):
    (found,) = audit_agents(made.sources._replace(evidence=None)).agents
    assert (found.grade, found.in_use_as, found.state) == (None, (), None)
