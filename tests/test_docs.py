"""What the docs say of the house is what the house is."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agentworld.steps.table import STEPS

ROOT = Path(__file__).parents[1]


def contract(name: str) -> list[str]:
    """The rooms of a layers contract from top to bottom."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    found = [each for each in tool["importlinter"]["contracts"] if each["name"] == name]
    return re.findall(r"\w+", " ".join(found[0]["layers"]))


def test_the_architecture_tells_every_room_in_the_order_of_the_contract():
    top = contract("programs stand on the library")[:-1]
    rooms = [f"agentworld.{room}" for room in contract("packages are stacked")]
    text = (ROOT / "docs/architecture.md").read_text()
    assert re.findall(r"^\*\*([\w.]+)\*\*", text, re.M) == [*top, *rooms]


def test_every_test_that_the_architecture_names_exists():
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", text, re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 14))
    for number, cell in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)
        assert named, number
        for file, test in named:
            assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


def test_the_readmes_tree_shows_every_room():
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"^\s+(\w+)(?:/|\.py)", text, re.M)
    assert set(contract("packages are stacked")) <= set(shown)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda path: path.stem
)
def test_a_decision_is_numbered_and_tells_its_problem_its_choice_and_its_price(path):
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+", path.stem)
    text = path.read_text()
    assert text.startswith(f"# {path.stem[:4]}. ")
    for part in ("Problem", "Decision", "Alternatives", "Consequences"):
        assert f"**{part}" in text


def test_no_two_decisions_have_the_same_number():
    numbers = [path.name[:4] for path in (ROOT / "docs/decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers))


def test_the_guide_shows_the_steps_as_they_are_declared(tmp_path):
    guide = (ROOT / "docs/guides/pipelines.md").read_text()
    (tmp_path / "guide.md").write_text(guide)
    words = [sys.executable, ROOT / "tools/steps_table.py", tmp_path / "guide.md"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(words, check=True, env=environment)
    assert guide.count("\n| `") >= len(STEPS)
    assert (tmp_path / "guide.md").read_text() == guide


def test_the_reference_is_what_the_code_says_and_leaves_no_meaning_out(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, ROOT / "tools/reference.py", tmp_path]
    subprocess.run(words, check=True, env=environment)
    pages = {path.name: path.read_text() for path in tmp_path.glob("*")}
    assert pages == {path.name: path.read_text() for path in (ROOT / "docs/reference").glob("*")}
    rows = [line for page in pages.values() for line in page.splitlines() if line[:2] == "| "]
    assert len(rows) > 500
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_link_of_the_docs_leads_somewhere():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        links = re.findall(r"\]\(([^)#:]+)\)", path.read_text())
        assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_module_and_file_that_the_docs_name_is_there():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packages = [ROOT / package for package in wheel["targets"]["wheel"]["packages"]]
    folders = [ROOT, *packages, *{package.parent for package in packages}]
    missing = []
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        modules = re.findall(r"python -m (agentworld[\w.]*\w)", text)
        files = [f"{module.replace('.', '/')}.py" for module in modules]
        files += re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|txt))`", text)
        missing += [
            f"{path.name}: {file}"
            for file in files
            if not any((folder / file).exists() for folder in folders)
        ]
    assert missing == []
