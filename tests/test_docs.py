"""The docs match the project."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agentworld.steps.table import STEPS
from agentworld_cli.main import app
from agentworld_operator.resources.kinds import KINDS
from make.guide import FENCE, fences

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
LIST_OF_DECISIONS = ROOT / "docs/decisions/README.md"
DECISIONS = sorted(set(LIST_OF_DECISIONS.parent.glob("*.md")) - {LIST_OF_DECISIONS})


def contract(name: str) -> list[str]:
    """The packages of a layers contract from top to bottom."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contracts = [entry for entry in tool["importlinter"]["contracts"] if entry["name"] == name]
    return re.findall(r"\w+", " ".join(contracts[0]["layers"]))


def test_the_architecture_page_lists_every_package_in_the_order_of_the_contract():
    programs = contract("programs stand on the library")[:-1]
    packages = [f"agentworld.{package}" for package in contract("packages are stacked")]
    text = (ROOT / "docs/architecture.md").read_text()
    assert re.findall(r"^\*\*([\w.]+)\*\*", text, re.M) == [*programs, *packages]


def test_every_test_that_the_architecture_names_exists():
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", text, re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 14))
    for number, cell in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)
        assert tests, number
        for file, test in tests:
            assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


def test_the_glossary_has_every_command_every_custom_resource_and_every_package():
    terms = {name for term, _ in glossary() for name in re.findall(r"`([\w-]+)`", term)}
    commands = set(typer.main.get_command(app).commands)
    packages = {
        *contract("programs stand on the library")[:-1],
        *contract("packages are stacked"),
    }
    assert commands | {kind.kind for kind in KINDS} | packages <= terms


def test_the_glossary_is_in_alphabetical_order_and_has_each_term_once():
    terms = [re.sub(r"[-_]", " ", term.replace("`", "").lower()) for term, _ in glossary()]
    assert terms == sorted(terms)
    names = [term for term, _ in glossary()]
    assert len(names) == len(set(names))


def glossary() -> list[tuple[str, str]]:
    """Each term of the glossary with the file or folder that defines it."""
    text = (ROOT / "docs/glossary.md").read_text()
    rows = re.findall(r"^\| (.+?) \| .+ \| \[.+\]\((.+)\) \|$", text, re.M)
    assert len(rows) == len([line for line in text.splitlines() if line[:2] == "| "]) - 1
    return rows


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_a_number_and_its_four_sections(path):
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+", path.stem)
    text = path.read_text()
    assert text.startswith(f"# {path.stem[:4]}. ")
    for part in ("Problem", "Decision", "Alternatives", "Consequences"):
        assert f"**{part}" in text


def test_the_architecture_page_shows_the_output_of_domain_list():
    result = CliRunner().invoke(app, ["domain", "list"])
    listing = f"$ agentworld domain list\n{result.output}```"
    assert listing in (ROOT / "docs/architecture.md").read_text()


def test_no_two_decisions_have_the_same_number():
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(numbers) == len(set(numbers))


def test_the_list_of_decisions_contains_each_decision_with_its_title():
    rows = re.findall(
        r"^\| \[(\d{4})\]\((.+)\) \| (.+) \| .+ \|$", LIST_OF_DECISIONS.read_text(), re.M
    )
    titles = [path.read_text().partition("\n")[0] for path in DECISIONS]
    assert [f"# {number}. {title}" for number, _, title in rows] == titles
    assert [name for _, name, _ in rows] == [path.name for path in DECISIONS]


def test_the_pipelines_guide_shows_the_steps_as_declared(tmp_path):
    guide = (ROOT / "docs/guides/pipelines.md").read_text()
    (tmp_path / "guide.md").write_text(guide)
    command = [sys.executable, ROOT / "tools/steps_table.py", tmp_path / "guide.md"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, env=environment)
    assert guide.count("\n| `") >= len(STEPS)
    assert (tmp_path / "guide.md").read_text() == guide


@pytest.mark.compute
def test_the_reference_matches_the_code_and_every_row_has_a_description(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, ROOT / "tools/reference.py", tmp_path]
    subprocess.run(command, check=True, env=environment)
    pages = {path.name: path.read_text() for path in tmp_path.glob("*")}
    assert pages == {path.name: path.read_text() for path in (ROOT / "docs/reference").glob("*")}
    rows = [line for page in pages.values() for line in page.splitlines() if line[:2] == "| "]
    assert len(rows) > 500
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_points_to_an_existing_file_and_heading(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" in link:
            continue
        file, _, heading = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def prose(path: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub generates from a page's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(path), re.M)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in plain}


def calls(path: Path, program: str) -> list[list[str]]:
    """The arguments of every call of a program in a page's code blocks, also of calls in a pod.

    In a block of `console` or `text` only lines with a prompt are calls.
    """
    argument_lists = []
    prefix = r"(?:\w+=\$\()?(?:[A-Z_]+=\S+ )*(?:kubectl .*?exec .*? -- )?(?:\.venv/bin/)?"
    pattern = re.compile(rf"{prefix}{program}(?= |$)(.*?)(?:\)| \| head -1\)| (?:[|>;#&]).*)?")
    for language, block in fences(path.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            if language == "sh" or line.startswith("$ "):
                match = pattern.fullmatch(line.removeprefix("$ ").strip())
                argument_lists += [shlex.split(match[1])] if match else []
    return argument_lists


def test_calls_of_a_program_are_found_in_the_code_blocks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nx=$(tool a --b $c | head -1)\ntool d \\\n  e  # why\nother f\n```\n"
        "```console\n$ tool g > h\ntool says i\n```\n"
        "1. In a list:\n\n   ```sh\n   tool j \\\n     k\n   ```\n"
        "```sh\nkubectl --namespace n exec pod -- tool l --m\nkubectl exec pod -- other tool\n"
        "A=b C_D=e tool n\n```\n"
    )
    expected = [["a", "--b", "$c"], ["d", "e"], ["g"], ["j", "k"], ["l", "--m"], ["n"]]
    assert calls(page, "tool") == expected


def test_every_make_target_that_a_page_shows_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    page_calls = [(path.name, call) for path in PAGES for call in calls(path, "make")]
    assert ("README.md", ["demo"]) in page_calls
    for page, call in page_calls:
        assert {word for word in call if "=" not in word} <= set(targets), (page, call)


@pytest.mark.compute
def test_every_agentworld_command_that_a_page_shows_exists_with_its_options():
    page_calls = [(path.name, call) for path in PAGES for call in calls(path, "agentworld")]
    expected = {("README.md", "audit"), ("cluster.md", "api-key"), ("backup.md", "backup")}
    assert expected <= {(page, call[0]) for page, call in page_calls}
    for page, call in page_calls:
        result = CliRunner().invoke(app, [*call, "--help"])
        assert result.exit_code == 0, f"{page}: agentworld {shlex.join(call)}: {result.output}"


def test_every_module_and_file_that_the_docs_name_exists():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packages = [ROOT / package for package in build["targets"]["wheel"]["packages"]]
    folders = [ROOT, *packages, *{package.parent for package in packages}]
    missing = []
    for path in [ROOT / "CHANGELOG.md", *PAGES]:
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
