import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agentworld import kinds
from agentworld.domains.base import domain_modules, domain_of
from agentworld.errors import InputError
from agentworld.kinds import Kinds, added_modules

GROUP = "agentworld.fruits"


@pytest.fixture
def added(monkeypatch, tmp_path):
    """Adds entry points of packages in a separate folder."""
    entry_points: list[EntryPoint] = []
    monkeypatch.setattr(
        kinds, "entry_points", lambda **params: EntryPoints(entry_points).select(**params)
    )
    monkeypatch.syspath_prepend(tmp_path)

    def add(name, text, attribute="FRUIT", group=GROUP):
        module = f"of_a_test_{name.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(text)
        entry_points.append(EntryPoint(name, f"{module}:{attribute}", group))
        return module

    yield add
    for name in [name for name in sys.modules if name.startswith("of_a_test_")]:
        del sys.modules[name]


def fruits():
    """A new table, because a table reads its entry points only once."""
    return Kinds[object](
        group=GROUP,
        noun="fruit",
        attribute="__doc__",
        modules={"ours": "agentworld.domains.text", "late": "agentworld.not_there"},
    )


@pytest.mark.usefixtures("added")
def test_a_built_in_kind_is_an_attribute_of_its_module():
    assert fruits().find("ours").startswith("Text: the domain of any recorded log")
    assert fruits().module_of("ours") == "agentworld.domains.text"


def test_an_entry_point_adds_a_kind_and_its_module_is_imported_on_first_use(added):
    module = added("apple", "FRUIT = object()")
    table = fruits()
    assert table.names == ["apple", "late", "ours"]
    assert table.module_of("apple") == module
    assert module not in sys.modules
    assert table.find("apple") is sys.modules[module].FRUIT
    assert table.find("apple") is table.find("apple")


def test_an_entry_point_may_name_any_attribute(added):
    added("apple", "RED = 'red'", attribute="RED")
    assert fruits().find("apple") == "red"


def test_an_entry_point_cannot_replace_a_built_in_kind(added):
    added("ours", "raise AssertionError('it was imported')")
    assert fruits().find("ours").startswith("Text")
    assert fruits().names == ["late", "ours"]


def test_an_entry_point_of_another_group_adds_no_kind(added):
    added("apple", "FRUIT = 1", group="agentworld.vegetables")
    assert fruits().names == ["late", "ours"]


def test_the_error_for_an_unknown_name_lists_the_known_names(added):
    added("apple", "FRUIT = 1")
    with pytest.raises(InputError, match="no fruit 'pear' here; there is apple, late, ours"):
        fruits().find("pear")
    with pytest.raises(InputError, match="there is apple, late, ours"):
        fruits().module_of("pear")


def test_added_modules_are_those_of_all_agentworld_entry_points(added):
    modules = {
        added("apple", ""),
        added("web", "", group="agentworld.domains"),
    }
    added("pytest", "", group="pytest11")
    assert added_modules() == modules


@pytest.mark.parametrize("name", ["shell", "text"])
def test_a_domain_is_found_by_its_name(name):
    assert domain_of(name).name == name
    assert domain_of(name).version.startswith(f"{name}-v")
    assert domain_modules([name]) == [f"agentworld.domains.{name}.domain"]


def test_the_error_for_an_unknown_domain_lists_the_known_domains():
    with pytest.raises(InputError, match="no domain 'web' here; there is .*shell.*text"):
        domain_of("web")
