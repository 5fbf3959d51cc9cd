"""The page of exports describes bills of materials correctly."""

import json
import re
from pathlib import Path

import pytest

from agentworld.operations import ledger
from make.bill import Told, build, parts_of
from make.guide import blocks, shell

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "exports.md").read_text().partition("## A bill of materials")[2]


@pytest.fixture
def own(tmp_path, monkeypatch) -> Told:
    told = build(tmp_path)
    monkeypatch.setattr(ledger, "open_sources", lambda _store: told.sources)
    monkeypatch.chdir(tmp_path)
    return told


@pytest.mark.compute
def test_the_program_of_the_page_verifies_and_extracts_an_exported_bill_of_materials(own):
    (commands, _start), (program,) = blocks(SECTION, "console"), blocks(SECTION, "python")
    with shell() as running:
        for line in commands.splitlines():
            running.run(f"{line.removeprefix('$ ')} --store .")
    plain = json.loads(Path("bill.json").read_text())
    Path("bill.json").unlink()
    Path("keys/simulator/signer.pem").unlink()  # who verifies has the public keys alone
    Path("verify.py").write_text(program)
    with shell() as running:
        running.run("python verify.py")
    assert json.loads(Path("bill.json").read_text()) == plain == own.bill


def test_the_page_documents_every_property(own):
    names = {
        each["name"].removeprefix("agentworld:")
        for part in parts_of(own.bill).values()
        for each in part["properties"]
    }
    assert names
    assert names <= set(re.findall(r"`(?:agentworld:)?([\w-]+)`", SECTION))


def test_the_auditors_guide_covers_every_ai_act_point_and_g7_cluster():
    text = (DOCS / "guides/auditors.md").read_text()
    act, _, elements = text.partition("## EU AI Act")[2].partition("## G7")
    rows = " ".join(re.findall(r"^\| ([\d(][^|]*) \|", act, re.M))
    assert set(re.findall(r"\d", rows)) == set("123456789")
    assert len(re.findall(r"^\| [A-Z]", elements, re.M)) == 7
