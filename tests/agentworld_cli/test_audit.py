"""The auditor's questions as commands."""

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

ARTIFACT = records.digest("made")
FINDING = ["subject", "grade", "problems", "notes"]


@pytest.fixture
def history(tmp_path, monkeypatch) -> Story:
    """A story in a store; its registry is in memory."""
    history = story(tmp_path)
    monkeypatch.setattr(ledger, "open_sources", lambda _store: history.sources)
    return history


def test_audit_dataset_lists_the_stages_simulators_and_runs_that_used_the_data_set(call, history):
    result = call(f"audit dataset {DATA[:20]} --store {history.store}")
    assert result.code == 0
    assert f"data {DATA}\n" in result.out
    assert "read by sft, rl" in result.out
    assert f"simulator {history.simulator} of world@1" in result.out
    assert f"run {history.run.id}: 1 episode, 2 steps served" in result.out


def test_audit_agent_prints_the_chain_back_to_the_base_of_its_world_model(call, history):
    assert f"base {BASE}\n" in call(f"audit agent hero@1 --store {history.store}").out


@pytest.mark.parametrize("question", ["agent hero@1", "simulator {simulator}"])
def test_audits_print_steps_copied_by_forks_beside_served_steps(
    call, history, question, monkeypatch
):
    traffic = Traffic(num_episodes=3, num_steps=5, num_copied=4)
    claim = Claim(
        agent="hero", artifact=ARTIFACT, starting_weights=ARTIFACT, simulator=history.simulator
    )
    names = {"run": history.run.id, "tenant": "local", "simulator": history.simulator, "at": "now"}
    edge = Edge(
        claim=claim, traffic=traffic, log_length=1, root=None, grade="disputed", reasons=(), **names
    )
    audit = EdgeAudit(subject="hero", grade="disputed", edge=edge)
    for module in (agent, simulator):
        monkeypatch.setattr(module, "edge_to", lambda *_: audit)
    result = call(f"audit {question.format(simulator=history.simulator)} --store {history.store}")
    assert (
        f"run {history.run.id}: 3 episodes, 5 steps served, 4 steps copied by forks" in result.out
    )


QUESTIONS = [
    "agent hero@1",
    "simulator {simulator}",
    "dataset {data}",
    "diff hero@1 hero@1",
    "verify",
    "verify hero@1",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_audit_at_a_time_prints_that_time(call, history, question):
    words = question.format(simulator=history.simulator, data=DATA)
    at = history.moments["an agent"].isoformat()
    result = call(f"audit {words} --at {at} --store {history.store}")
    assert re.search(rf"\bat {re.escape(at)}(\n|, )", result.out)
    as_json = call(f"audit {words} --at {at} --store {history.store} --json")
    assert json.loads(as_json.out)["at"] == at
    assert json.loads(call(f"audit {words} --store {history.store} --json").out)["at"] is None


@pytest.mark.parametrize("question", [*QUESTIONS, "alias best", "export --format csv"])
@pytest.mark.parametrize(
    ("at", "words"), [("2100-01-01", "is in the future"), ("noon", "'noon' is not a time")]
)
def test_an_audit_at_an_invalid_or_future_time_is_refused(call, history, question, at, words):
    history.sources.ledger.aliases.set("best", history.simulator, "me")
    command = question.format(simulator=history.simulator, data=DATA)
    result = call(f"audit {command} --at {at} --store {history.store}")
    assert (result.code, result.out) == (2, "")
    assert words in result.error


def test_an_audit_at_a_time_verifies_and_exports_only_earlier_records(call, history):
    (history.store / "agent/model.safetensors").write_text("other")
    at = history.moments["weights"].isoformat()
    result = call(f"audit verify --at {at} --store {history.store}")
    summary = f"1 run and 1 version at {at}, of which 0 unsigned; 0 problems\n"
    assert (result.code, result.out) == (0, summary)
    assert call(f"audit verify hero@1 --at {at} --store {history.store}").code == 2
    export = call(f"audit export --format in-toto --at {at} --store {history.store}")
    assert len(export.out.splitlines()) == 4


def test_an_agent_that_is_not_validated_live_is_incomplete_and_not_broken(call, history):
    result = call(f"audit agent hero@1 --store {history.store}")
    assert "incomplete: the agent was not validated live" in result.out
    assert "broken: the agent" not in result.out


@pytest.mark.parametrize("version", ["", "hero@1"])
def test_a_successful_verification_prints_a_summary(call, history, version):
    result = call(f"audit verify {version} --store {history.store}")
    assert (result.code, result.out) == (
        0,
        "1 run and 2 versions, of which 0 unsigned; 0 problems\n",
    )
    assert "verify" in result.error


def test_each_verification_problem_is_printed_on_a_line_and_the_command_fails(call, history):
    (history.store / "agent/model.safetensors").write_text("other")
    (history.store / "world/model.safetensors").write_text("other")
    result = call(f"audit verify --store {history.store}")
    first, second, summary = result.out.splitlines()
    assert result.code == 8
    assert first.startswith("hero@1: mirror differs in files")
    assert second.startswith("world@1: mirror differs in files")
    assert summary.endswith("; 2 problems")
    assert "its problems (2) are printed above" in result.error
    as_json = call(f"audit verify --store {history.store} --json")
    assert json.loads(as_json.out)["problems"] == [first, second]
    assert as_json.code == 8


def test_every_verdict_has_a_subject_a_grade_problems_and_notes(call, history):
    report = json.loads(call(f"audit verify --store {history.store} --json").out)
    findings = [*report["runs"].values(), *report["versions"], *report["others"]]
    assert [list(finding)[:4] for finding in findings] == [FINDING] * 5
    subjects = [finding["subject"] for finding in findings]
    assert subjects[:3] == [f"run {history.run.id}", "hero@1", "world@1"]
    for question in (f"run verify {history.run.id}", "episode verify e", "audit agent hero@1"):
        verdict = json.loads(call(f"{question} --store {history.store} --json").out)
        assert list(verdict)[:4] == FINDING


@pytest.mark.parametrize("form", ["in-toto", "csv", "openlineage"])
def test_an_export_is_printed_or_written_to_a_file(call, history, form):
    printed_result = call(f"audit export --format {form} --store {history.store}")
    assert (printed_result.code, printed_result.error) == (0, "")
    result = call(f"audit export --format {form} --store {history.store} --out {history.store}/out")
    assert (result.code, result.out) == (0, "")
    assert (history.store / "out").read_text() == printed_result.out
    assert len(printed_result.out.splitlines()) == {"in-toto": 6, "csv": 2, "openlineage": 10}[form]


def test_an_unknown_export_format_is_refused(call, history):
    result = call(f"audit export --format xml --store {history.store}")
    assert result.code == 2


def test_a_bill_of_materials_is_printed_or_written_and_signed_on_request(call, history):
    command = f"audit export hero@1 --format cyclonedx --store {history.store}"
    printed_result = call(command)
    assert (printed_result.code, json.loads(printed_result.out)["specVersion"]) == (0, "1.7")
    assert call(f"{command} --out {history.store}/bill.json").code == 0
    assert (history.store / "bill.json").read_text() == printed_result.out
    signed_result = call(f"{command} --sign")
    statement = verify(signed_result.out.strip().encode(), history.sources.evidence.trusted)
    assert statement.predicate == json.loads(printed_result.out)


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
    call, history, words, sentence
):
    result = call(f"audit export {words} --store {history.store}")
    assert result.code != 0
    assert sentence in result.error
    assert result.out == ""
