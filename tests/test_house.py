"""Rules of the repository for its files, imports, tests and dependencies."""

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "tools/constraints"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
TOP_FOLDERS = sorted({package.partition("/")[0] for package in PACKAGES})
RECIPES = sorted((ROOT / "platform/agentworld/recipes").glob("*.yaml"))
VAGUE = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"}


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def run_python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a fresh interpreter with an empty environment, because pytest's own interpreter has
    already imported `platform`.
    """
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env={}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("folder", [".", *TOP_FOLDERS, "tests"])
def test_the_folder_platform_never_shadows_the_standard_library(folder):
    result = run_python("-c", "import platform; print(platform.__file__)", cwd=ROOT / folder)
    assert result.stdout.strip() == str(Path(sysconfig.get_path("stdlib")) / "platform.py")


@pytest.mark.compute
def test_pytest_starts_as_a_module_from_the_root():
    assert run_python("-m", "pytest", "--version").returncode == 0


@pytest.mark.parametrize("folder", TOP_FOLDERS)
def test_a_top_folder_holds_import_packages_only(folder):
    entries = [path for path in (ROOT / folder).iterdir() if path.name[0] not in "._"]
    assert sorted(names(entries)) == sorted(
        package for package in PACKAGES if package.startswith(f"{folder}/")
    )
    assert names([path for path in entries if not (path / "__init__.py").is_file()]) == []
    assert not (ROOT / folder / "__init__.py").exists()


def test_every_package_has_a_py_typed_marker():
    assert [path for path in PACKAGES if not (ROOT / path / "py.typed").is_file()] == []


def test_no_folder_of_tests_is_a_package():
    folders = [path for path in (ROOT / "tests").iterdir() if path.name != "peers"]
    assert names([path for folder in folders for path in folder.rglob("__init__.py")]) == []
    # The packages of the peers are installed, and each has its own project.
    peers = [path.parent for path in (ROOT / "tests/peers").rglob("__init__.py")]
    assert names([path for path in peers if not (path.parent / "pyproject.toml").is_file()]) == []


@pytest.mark.parametrize(
    ("folder", "cap"), [*((folder, 300) for folder in (*TOP_FOLDERS, "tools")), ("tests", 400)]
)
def test_no_file_is_longer_than_its_cap(folder, cap):
    files = python_files(folder)
    assert files
    assert names([path for path in files if len(path.read_text().splitlines()) > cap]) == []


@pytest.mark.compute
def test_no_function_is_longer_than_60_lines():
    long_functions = []
    for path in python_files(*TOP_FOLDERS, "tools", "tests"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno >= 60:
                    long_functions.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert long_functions == []


@pytest.mark.compute
def test_packages_import_each_other_in_one_direction_and_in_short_chains():
    import grimp

    graph = grimp.build_graph("agentworld")
    imports: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            package, target = (name.split(".")[1:2] for name in (module, imported))
            if package and target and package != target:
                imports.setdefault(package[0], set()).add(target[0])
    lengths: dict[str, int] = {}
    for package in TopologicalSorter(imports).static_order():  # raises CycleError
        lengths[package] = 1 + max((lengths[name] for name in imports.get(package, ())), default=0)
    assert max(lengths.values()) <= 12


@pytest.mark.compute
def test_no_import_is_relative():
    importers = []
    for path in python_files(*TOP_FOLDERS, "tools", "tests"):
        text = path.read_text()
        if not re.search(r"\bfrom[\s\\]*\.", text):
            continue  # parsing all files takes a second
        nodes = ast.walk(ast.parse(text))
        if any(isinstance(node, ast.ImportFrom) and node.level for node in nodes):
            importers.append(path)
    assert names(importers) == []


def functions_of(path: Path) -> dict[str, ast.AST]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {
        node.name: node
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def calls(function: ast.AST) -> set[str]:
    """The names of the functions that a function calls as `f()` or `module.f()`."""
    callees = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    return {ast.unparse(callee).removeprefix("pytest.") for callee in callees}


def asserting_names(functions: dict[str, ast.AST], checks: set[str]) -> set[str]:
    """The functions that assert something, or call one that does."""
    result = {
        name
        for name, function in functions.items()
        if any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or calls(function) & checks
    }
    return result if result <= checks else result | asserting_names(functions, checks | result)


CHECKS = {"raises", "warns", "fail", "validate", "check_env", "torch.testing.assert_close"}
"""Functions of others that fail a test: pytest's, `kubernetes_validate`'s, Gymnasium's, torch's."""


@pytest.mark.compute
def test_every_test_asserts_something():
    problems = []
    helpers = {"waiting": {"wait_for"}, "machines.kubernetes_types": {"check", "check_schema"}}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        imports = re.findall(r"^from ([\w.]+) import", path.read_text(), re.MULTILINE)
        imported = set().union(*(helpers.get(module, set()) for module in imports))
        functions = functions_of(path)
        tests = {name for name in functions if name.startswith("test_")}
        problems += [
            f"{path.name}: {name}" for name in tests - asserting_names(functions, CHECKS | imported)
        ]
    assert sorted(problems) == []


EVIDENCE = ("access", "audit", "client", "ledger", "lineage", "records", "signing", "storage")
OPEN_CALL = re.compile(
    r"\.read_bytes\(|\.read_text\(|\.open\(\"r|(?<![.\w])(?<!def )open\(|os\.open\(.*RDONLY"
)


def test_packages_that_read_evidence_open_files_only_with_open_regular():
    packages = [f"platform/agentworld/{package}" for package in EVIDENCE]
    problems = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in python_files(*packages)
        for line in path.read_text().splitlines()
        if OPEN_CALL.search(line) and "O_DIRECTORY" not in line and path.name != "file.py"
    ]
    assert problems == []


def test_no_file_or_folder_has_a_catch_all_name_such_as_utils():
    paths = [
        path for folder in (*TOP_FOLDERS, "tools", "tests") for path in (ROOT / folder).rglob("*")
    ]
    assert names([path for path in paths if VAGUE & set(re.split(r"[_.\W]", path.name))]) == []


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_shipped_recipe_loads_and_has_the_name_of_its_file(path):
    from agentworld.recipes import load_recipe

    assert load_recipe(path).name == path.stem


def pins(file: str) -> dict[str, str]:
    lines = (CONSTRAINTS / f"{file}.txt").read_text().replace("\\\n", "").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_declared_dependency_is_pinned_to_an_allowed_version():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    for requirements, files in [
        (project["dependencies"], ["product"]),
        (extras["train"], ["product"]),
        (extras["dev"], ["product", "test", "helm", "mlflow"]),
        (extras["deepspeed"], ["test"]),
        (extras["gym"], ["test"]),
        (extras["postgres"], ["test"]),
        (extras["serve-cpu"], ["vllm"]),
    ]:
        versions = {name: version for file in files for name, version in pins(file).items()}
        for requirement in map(Requirement, requirements):
            version = versions.get(canonicalize_name(requirement.name), "0").split()[0]
            assert version in requirement.specifier, str(requirement)


def test_a_pin_is_a_name_and_a_version_and_no_address():
    for file in ("product", "test", "openenv", "mlflow"):
        text = (CONSTRAINTS / f"{file}.txt").read_text()
        lines = [line for line in text.splitlines() if line[:1] != "#"]
        assert lines
        assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", line)] == []
