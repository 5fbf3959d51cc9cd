"""Tables of extensions: names, and the modules that have them."""

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from agentworld.errors import InputError

_Kind = TypeVar("_Kind")


class Kinds(Generic[_Kind]):
    """Objects of one kind by name; the module of each is imported on first use."""

    def __init__(
        self, *, group: str, modules: Mapping[str, str], noun: str, attribute: str
    ) -> None:
        """`group` is the entry-point group by which other packages add theirs, `noun` the word in
        errors, and `attribute` the object's name in our modules.
        """
        self._group = group
        self._noun = noun
        self._attribute = attribute
        self._modules = modules
        self._loaded: dict[str, _Kind] = {}

    def find(self, name: str) -> _Kind:
        """The object of this name; raises InputError for an unknown name."""
        if name not in self._loaded:
            module = import_module(self.module_of(name))
            self._loaded[name] = cast(_Kind, getattr(module, self._attribute_of(name)))
        return self._loaded[name]

    def module_of(self, name: str) -> str:
        """The module of this name; raises InputError for an unknown name."""
        if name in self._modules:
            return self._modules[name]
        if name in self._entry_points:
            return self._entry_points[name].module
        raise InputError(
            f"there is no {self._noun} {name!r} here; there is {', '.join(self.names)}"
        )

    @property
    def names(self) -> list[str]:
        """All names in alphabetical order."""
        return sorted({*self._modules, *self._entry_points})

    @property
    def own_names(self) -> list[str]:
        """The names that no other package adds, in alphabetical order."""
        return sorted(self._modules)

    def _attribute_of(self, name: str) -> str:
        return self._attribute if name in self._modules else self._entry_points[name].attr

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        """The entry points of other packages; they cannot replace ours."""
        return {point.name: point for point in entry_points(group=self._group)}


def added_modules() -> set[str]:
    """The modules that other packages add, of every kind."""
    points = entry_points()
    groups = [group for group in points.groups if group.startswith("agentworld.")]
    return {point.module for group in groups for point in points.select(group=group)}
