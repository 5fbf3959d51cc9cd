"""The code digest of a step covers its domains: ours, and those that other packages add."""

import shutil
import sys
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from agentworld import kinds
from agentworld.domains import base, live
from agentworld.errors import InputError
from agentworld.runner import code
from agentworld.runner.step import folder_of

pytestmark = pytest.mark.compute  # parses all our code

_parse = code._imports_of.__wrapped__
_parsed: dict[tuple[str, str, str], frozenset[str]] = {}


def imports_of(file, module):
    """Cached by a file's text, so that unchanged files are parsed once."""
    key = file.read_text(), file.name, module
    if key not in _parsed:
        _parsed[key] = _parse(file, module)
    return _parsed[key]


def clear_cache():
    code.code_digest.cache_clear()


@pytest.fixture(autouse=True)
def caches(monkeypatch):
    """Clears the caches before and after a test."""
    clear_cache()
    monkeypatch.setattr(code, "_imports_of", imports_of)
    yield
    clear_cache()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of our code, which a test may change."""
    copy = tmp_path / "agentworld"
    shutil.copytree(code._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "_PACKAGE", copy)
    monkeypatch.setattr(code, "_LIVE", copy / "domains/live.py")
    monkeypatch.setattr(code, "_OWN", copy / "runner/code.py")
    return copy


def digests(step, *domains):
    clear_cache()
    return {domain: code.code_digest(step, (domain,)) for domain in domains}


@cache
def original_digests(step, *domains):
    """The same, cached, for our code and for unchanged copies."""
    return digests(step, *domains)


def changed_by(file, step, *domains, before=None):
    """The domains with which the digest of a step changes when a byte is added to a file."""
    before = before or digests(step, *domains)
    with file.open("a") as text:
        text.write("\n")
    after = digests(step, *domains)
    return {domain for domain in domains if before[domain] != after[domain]}


def changed_in_copy(file, step):
    """The same for a file in a copy of our code, with both of our domains."""
    return changed_by(file, step, "shell", "text", before=original_digests(step, "shell", "text"))


@pytest.mark.parametrize("step", ["prepare", "cpt", "agent"])
@pytest.mark.parametrize("file", ["domain.py", "tags.py", "prompts.txt", "judge_prompt.txt"])
def test_a_change_of_the_shell_domain_changes_only_steps_of_the_shell(package, step, file):
    path = package / "domains/shell" / file
    assert changed_in_copy(path, step) == {"shell"}


@pytest.mark.parametrize("file", ["domains/text/domain.py", "domains/text/judge_prompt.txt"])
def test_a_change_of_the_text_domain_changes_only_steps_of_text(package, file):
    assert changed_in_copy(package / file, "cpt") == {"text"}


def test_a_change_of_shared_domain_code_changes_the_steps_of_all_domains(package):
    assert changed_in_copy(package / "domains/rubric.py", "cpt") == {"shell", "text"}


@pytest.mark.parametrize(
    ("step", "is_code"), [("collect", True), ("validate", True), ("cpt", False)]
)
def test_environment_code_counts_only_for_steps_that_open_environments(package, step, is_code):
    session = package / "domains/shell/session.py"
    assert changed_in_copy(session, step) == ({"shell"} if is_code else set())


def test_the_code_digest_without_domains_excludes_domain_code(package):
    before = code.code_digest("cpt")
    (package / "domains/shell/domain.py").write_text("")
    clear_cache()
    assert code.code_digest("cpt") == before


def test_an_unknown_domain_is_refused():
    with pytest.raises(InputError, match="no domain 'web' here"):
        code.code_digest("cpt", ("web",))


def test_the_order_of_domains_does_not_change_the_key_of_a_step():
    folders = {
        domains: folder_of(Path("store"), "cpt", [], {}, domains=domains)
        for domains in [("shell", "text"), ("text", "shell", "text"), ("text",), ()]
    }
    first, reordered, *others = folders.values()
    assert first == reordered
    assert len({first, *others}) == 3


@pytest.fixture
def add_domain(tmp_path, monkeypatch):
    """Adds a domain of another package, by the module of its entry point."""
    entry_points: list[EntryPoint] = []
    monkeypatch.setattr(
        kinds, "entry_points", lambda **params: EntryPoints(entry_points).select(**params)
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    for table in (base._KINDS, live._KINDS):
        monkeypatch.delitem(vars(table), "_entry_points", raising=False)

    def add(name, module, files, group="agentworld.domains"):
        for file, text in files.items():
            path = tmp_path / "site" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        entry_points.append(EntryPoint(name, f"{module}:DOMAIN", group))
        return tmp_path / "site"

    yield add
    for table in (base._KINDS, live._KINDS):
        vars(table).pop("_entry_points", None)
    for name in [name for name in sys.modules if name.startswith("of_others")]:
        del sys.modules[name]


FILES = {
    "of_others/__init__.py": "",
    "of_others/web/__init__.py": "",
    "of_others/web/domain.py": (
        "import agentworld.domains.rubric\nfrom . import words\nfrom ..deep.web.tags import x\n"
    ),
    "of_others/web/words.py": "",
    "of_others/web/prompts.txt": "",
    "of_others/deep/__init__.py": "",
    "of_others/deep/web/__init__.py": "",
    "of_others/deep/web/tags.py": "from .words import y",
    "of_others/deep/web/words.py": "",
    "of_others/unrelated.py": "",
}


@pytest.mark.parametrize(
    ("file", "is_code"),
    [
        ("web/domain.py", True),
        ("web/words.py", True),
        ("web/prompts.txt", True),
        ("deep/web/tags.py", True),
        ("deep/web/words.py", True),
        ("unrelated.py", False),
    ],
)
def test_a_change_of_a_domain_in_another_package_changes_only_its_steps(add_domain, file, is_code):
    site = add_domain("web", "of_others.web.domain", FILES)
    domains = changed_by(site / "of_others" / file, "cpt", "web", "text")
    assert domains == ({"web"} if is_code else set())


def test_code_that_a_domain_in_another_package_imports_from_agentworld_counts(add_domain, package):
    add_domain("web", "of_others.web.domain", FILES)
    assert "web" in changed_by(package / "domains/rubric.py", "register", "web")


def test_a_domain_may_be_a_module_without_a_package(add_domain):
    site = add_domain("web", "of_others_web", {"of_others_web.py": "", "notes.txt": ""})
    assert changed_by(site / "of_others_web.py", "cpt", "web", "text") == {"web"}
    assert changed_by(site / "notes.txt", "cpt", "web", "text") == set()


def test_environment_code_in_another_package_counts_only_for_steps_that_open_it(add_domain):
    site = add_domain("web", "of_others.web.domain", {**FILES, "of_others/live.py": ""})
    add_domain("web", "of_others.live", {}, group="agentworld.live_domains")
    assert changed_by(site / "of_others/live.py", "collect", "web") == {"web"}
    assert changed_by(site / "of_others/live.py", "cpt", "web") == set()


def test_moving_an_installed_package_does_not_change_the_code_digest(
    add_domain, tmp_path, monkeypatch
):
    site = add_domain("web", "of_others.web.domain", FILES)
    before = digests("cpt", "web")
    shutil.move(site, tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    for name in [name for name in sys.modules if name.startswith("of_others")]:
        del sys.modules[name]
    assert digests("cpt", "web") == before


@pytest.mark.parametrize(
    ("step", "file"),
    [
        ("evaluate", "evaluate/metrics/token_f1.py"),
        ("measure", "evaluate/metrics/tokens.py"),
        ("rl", "train/algorithms/gspo.py"),
    ],
)
def test_modules_named_in_a_table_are_code_of_the_step_that_reads_the_table(step, file):
    assert code._PACKAGE / file in code._reached_from(f"agentworld.steps.{step}")
