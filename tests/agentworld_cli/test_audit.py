"""The auditor's questions as they are typed."""

import json
import re

import pytest

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.questions import agent, simulator
from agentworld.operations import ledger
from agentworld.records.statements.edge import Claim, Edge, Traffic
from agentworld.signing.envelope import verify
from make import records
from make.story import BASE, DATA, Story, story

MADE = records.digest("made")
FINDING = ["subject", "grade", "problems", "notes"]


@pytest.fixture
def told(tmp_path, monkeypatch) -> Story:
    """A story in a store; its registry is in memory."""
    told = story(tmp_path)
    monkeypatch.setattr(ledger, "open_sources", lambda _store: told.sources)
    return told


def test_audit_dataset_lists_the_stages_simulators_and_runs_that_used_the_data_set(call, told):
    done = call(f"audit dataset {DATA[:20]} --store {told.store}")
    assert done.code == 0
    assert f"data {DATA}\n" in done.out
    assert "read by sft, rl" in done.out
    assert f"simulator {told.simulator} of world@1" in done.out
    assert f"run {told.run.id}: 1 episode, 2 steps served" in done.out


def test_audit_agent_prints_the_chain_back_to_the_base_of_its_world_model(call, told):
    assert f"base {BASE}\n" in call(f"audit agent hero@1 --store {told.store}").out


@pytest.mark.parametrize("question", ["agent hero@1", "simulator {simulator}"])
def test_audits_print_steps_copied_by_forks_beside_served_steps(call, told, question, monkeypatch):
    traffic = Traffic(num_episodes=3, num_steps=5, num_copied=4)
    claim = Claim(agent="hero", artifact=MADE, starting_weights=MADE, simulator=told.simulator)
    known = {"run": told.run.id, "tenant": "local", "simulator": told.simulator, "at": "now"}
    edge = Edge(
        claim=claim, traffic=traffic, log_length=1, root=None, grade="disputed", reasons=(), **known
    )
    found = EdgeAudit(subject="hero", grade="disputed", edge=edge)
    for module in (agent, simulator):
        monkeypatch.setattr(module, "edge_to", lambda *_: found)
    shown = call(f"audit {question.format(simulator=told.simulator)} --store {told.store}")
    assert f"run {told.run.id}: 3 episodes, 5 steps served, 4 steps copied by forks" in shown.out


QUESTIONS = [
    "agent hero@1",
    "simulator {simulator}",
    "dataset {data}",
    "diff hero@1 hero@1",
    "verify",
    "verify hero@1",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_audit_at_a_time_prints_that_time(call, told, question):
    words = question.format(simulator=told.simulator, data=DATA)
    at = told.moments["an agent"].isoformat()
    shown = call(f"audit {words} --at {at} --store {told.store}")
    assert re.search(rf"\bat {re.escape(at)}(\n|, )", shown.out)
    as_json = call(f"audit {words} --at {at} --store {told.store} --json")
    assert json.loads(as_json.out)["at"] == at
    assert json.loads(call(f"audit {words} --store {told.store} --json").out)["at"] is None


@pytest.mark.parametrize("question", [*QUESTIONS, "alias best", "export --format csv"])
@pytest.mark.parametrize(
    ("at", "words"), [("2100-01-01", "is in the future"), ("noon", "'noon' is not a time")]
)
def test_an_audit_at_an_invalid_or_future_time_is_refused(call, told, question, at, words):
    told.sources.ledger.aliases.set("best", told.simulator, "me")
    asked = question.format(simulator=told.simulator, data=DATA)
    done = call(f"audit {asked} --at {at} --store {told.store}")
    assert (done.code, done.out) == (2, "")
    assert words in done.error


def test_an_audit_at_a_time_verifies_and_exports_only_earlier_records(call, told):
    (told.store / "agent/model.safetensors").write_text("other")
    at = told.moments["weights"].isoformat()
    done = call(f"audit verify --at {at} --store {told.store}")
    summary = f"1 run and 1 version at {at}, of which 0 unsigned; 0 problems\n"
    assert (done.code, done.out) == (0, summary)
    assert call(f"audit verify hero@1 --at {at} --store {told.store}").code == 2
    exported = call(f"audit export --format in-toto --at {at} --store {told.store}")
    assert len(exported.out.splitlines()) == 4


def test_an_agent_that_is_not_validated_live_is_incomplete_and_not_broken(call, told):
    done = call(f"audit agent hero@1 --store {told.store}")
    assert "incomplete: the agent was not validated live" in done.out
    assert "broken: the agent" not in done.out


@pytest.mark.parametrize("what", ["", "hero@1"])
def test_a_successful_verification_prints_a_summary(call, told, what):
    done = call(f"audit verify {what} --store {told.store}")
    assert (done.code, done.out) == (0, "1 run and 2 versions, of which 0 unsigned; 0 problems\n")
    assert "verify" in done.error


def test_each_verification_problem_is_printed_on_a_line_and_the_command_fails(call, told):
    (told.store / "agent/model.safetensors").write_text("other")
    (told.store / "world/model.safetensors").write_text("other")
    done = call(f"audit verify --store {told.store}")
    first, second, summary = done.out.splitlines()
    assert done.code == 8
    assert first.startswith("hero@1: mirror differs in files")
    assert second.startswith("world@1: mirror differs in files")
    assert summary.endswith("; 2 problems")
    assert "its problems (2) are printed above" in done.error
    told_json = call(f"audit verify --store {told.store} --json")
    assert json.loads(told_json.out)["problems"] == [first, second]
    assert told_json.code == 8


def test_every_verdict_has_a_subject_a_grade_problems_and_notes(call, told):
    everything = json.loads(call(f"audit verify --store {told.store} --json").out)
    findings = [*everything["runs"].values(), *everything["versions"], *everything["others"]]
    assert [list(finding)[:4] for finding in findings] == [FINDING] * 5
    subjects = [finding["subject"] for finding in findings]
    assert subjects[:3] == [f"run {told.run.id}", "hero@1", "world@1"]
    for question in (f"run verify {told.run.id}", "episode verify e", "audit agent hero@1"):
        verdict = json.loads(call(f"{question} --store {told.store} --json").out)
        assert list(verdict)[:4] == FINDING


@pytest.mark.parametrize("form", ["in-toto", "csv", "openlineage"])
def test_an_export_is_printed_or_written_to_a_file(call, told, form):
    printed = call(f"audit export --format {form} --store {told.store}")
    assert (printed.code, printed.error) == (0, "")
    done = call(f"audit export --format {form} --store {told.store} --out {told.store}/out")
    assert (done.code, done.out) == (0, "")
    assert (told.store / "out").read_text() == printed.out
    assert len(printed.out.splitlines()) == {"in-toto": 6, "csv": 2, "openlineage": 10}[form]


def test_an_unknown_export_format_is_refused(call, told):
    done = call(f"audit export --format xml --store {told.store}")
    assert done.code == 2


def test_a_bill_of_materials_is_printed_or_written_and_signed_on_request(call, told):
    asked = f"audit export hero@1 --format cyclonedx --store {told.store}"
    printed = call(asked)
    assert (printed.code, json.loads(printed.out)["specVersion"]) == (0, "1.7")
    assert call(f"{asked} --out {told.store}/bill.json").code == 0
    assert (told.store / "bill.json").read_text() == printed.out
    signed = call(f"{asked} --sign")
    statement = verify(signed.out.strip().encode(), told.sources.evidence.trusted)
    assert statement.predicate == json.loads(printed.out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--format cyclonedx", "a bill of materials describes one agent; name it"),
        ("hero --format cyclonedx", "'hero' is not NAME@VERSION"),
        ("gone@1 --format cyclonedx", "nothing is registered as 'gone'"),
        ("hero@1 --format csv", "--format csv writes all agents"),
        ("--format in-toto --sign", "--format in-toto writes all agents"),
    ],
)
def test_a_bill_of_materials_requires_one_agent_and_other_formats_refuse_an_agent(
    call, told, words, sentence
):
    done = call(f"audit export {words} --store {told.store}")
    assert done.code != 0
    assert sentence in done.error
    assert done.out == ""
