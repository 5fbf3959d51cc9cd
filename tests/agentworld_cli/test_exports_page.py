"""The page of exports describes bills of materials correctly."""

import json
import re
from pathlib import Path

import pytest

from agentworld.operations import ledger
from make.bill import BilledAgent, build, parts_of
from make.guide import blocks, shell

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "exports.md").read_text().partition("## A bill of materials")[2]


@pytest.fixture
def history(tmp_path, monkeypatch) -> BilledAgent:
    history = build(tmp_path)
    monkeypatch.setattr(ledger, "open_sources", lambda _store: history.sources)
    monkeypatch.chdir(tmp_path)
    return history


@pytest.mark.compute
def test_the_program_of_the_page_verifies_and_extracts_an_exported_bill_of_materials(history):
    (commands, _start), (program,) = blocks(SECTION, "console"), blocks(SECTION, "python")
    with shell() as session:
        for line in commands.splitlines():
            session.run(f"{line.removeprefix('$ ')} --store .")
    bill = json.loads(Path("bill.json").read_text())
    Path("bill.json").unlink()
    Path("keys/simulator/signer.pem").unlink()  # a verifier has only the public keys
    Path("verify.py").write_text(program)
    with shell() as session:
        session.run("python verify.py")
    assert json.loads(Path("bill.json").read_text()) == bill == history.bill


def test_the_page_documents_every_property(history):
    names = {
        entry["name"].removeprefix("agentworld:")
        for part in parts_of(history.bill).values()
        for entry in part["properties"]
    }
    assert names
    assert names <= set(re.findall(r"`(?:agentworld:)?([\w-]+)`", SECTION))


def test_the_auditors_guide_covers_every_ai_act_point_and_g7_cluster():
    text = (DOCS / "guides/auditors.md").read_text()
    act, _, elements = text.partition("## EU AI Act")[2].partition("## G7")
    rows = " ".join(re.findall(r"^\| ([\d(][^|]*) \|", act, re.M))
    assert set(re.findall(r"\d", rows)) == set("123456789")
    assert len(re.findall(r"^\| [A-Z]", elements, re.M)) == 7
