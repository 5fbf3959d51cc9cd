"""The digest of a step's code.

It covers the step's module, every module of ours that it reaches by imports, and the domains of its
data. So a change of the audit does not make a model train again.
"""

import ast
import subprocess
from collections.abc import Set
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agentworld.domains.base import domain_modules
from agentworld.domains.live import live_domain_modules
from agentworld.kinds import added_modules
from agentworld.records.base import Digest, digest_file, digest_json

_PACKAGE = Path(__file__).parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_PROSE = (".txt", ".jinja")
_LIVE = _PACKAGE / "domains" / "live.py"
_BY_NAME = (f"{_PACKAGE.name}.domains.", f"{_PACKAGE.name}.data.importers.")
"""Tables of extensions of which a step uses only some; a separate input of the step names them."""
_OWN = _PACKAGE / "runner" / "code.py"
"""This module imports environments by name, and opens none."""


@cache
def code_digest(step: str, domains: tuple[str, ...] = ()) -> Digest:
    """The digest of the source files that a step reaches, those of its domains, and their data
    files. A domain is loaded by name, so no import leads to it. Its environments count if the step
    can open any. Raises InputError for an unknown domain.
    """
    packages = _added_packages()  # called once, because it reads the installed packages
    files: dict[str, Path | None] = {}
    _reach(f"{_PACKAGE.name}.steps.{step}", files, packages)
    kinds = domain_modules(domains)
    if _LIVE in files.values():
        kinds += live_domain_modules(domains)
    for module in kinds:
        _reach(module, files, packages)
    modules = set(filter(None, files.values()))
    folders = {file.parent for file in modules if (file.parent / "__init__.py").is_file()}
    texts = {text for folder in folders for text in folder.iterdir() if text.suffix in _PROSE}
    return _digest_of(modules | texts)


@cache
def module_digest(module: str) -> Digest:
    """The digest of the source files that a module reaches, for a module loaded by name."""
    return _digest_of(_reached_from(module))


def _digest_of(files: Set[Path]) -> Digest:
    return digest_json({_name_of(path): digest_file(path) for path in sorted(files)})


def commit() -> str:
    """The checkout's commit, with `-dirty` if files were changed; `unknown` without a checkout."""
    command = "git describe --always --dirty --abbrev=40 --exclude *".split()
    try:
        completion = subprocess.run(
            command, cwd=_CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return "unknown"
    return completion.stdout.strip() or "unknown"


def _reached_from(module: str) -> set[Path]:
    files: dict[str, Path | None] = {}
    _reach(module, files, _added_packages())
    return set(filter(None, files.values()))


def _reach(module: str, files: dict[str, Path | None], packages: Set[str]) -> None:
    """Adds the files of a module and of all its imports, by name; null for other packages."""
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in files:
            continue
        file = files[name] = _file_of(name, packages)
        if file and file != _OWN:
            waiting += _imports_of(file, name)


def _file_of(module: str, packages: Set[str]) -> Path | None:
    """The file of a module of ours, or of a package that adds a domain; null for any other."""
    package, *rest = module.split(".")
    top = _top_of(package, packages)
    if top is None or top.is_file():
        return top if top and not rest else None
    path = top.joinpath(*rest)
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _top_of(package: str, packages: Set[str]) -> Path | None:
    """The folder of a package, or the file of a top-level module."""
    if package == _PACKAGE.name:
        return _PACKAGE
    spec = find_spec(package) if package in packages else None
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec and spec.origin else None


def _added_packages() -> set[str]:
    return {module.partition(".")[0] for module in added_modules()}


def _name_of(path: Path) -> str:
    """The path of a file in its package, wherever that is installed."""
    if path.is_relative_to(_PACKAGE):
        return path.relative_to(_PACKAGE).as_posix()
    packages = _added_packages()
    tops = ((package, _top_of(package, packages)) for package in sorted(packages))
    names = (
        f"{package}/{path.relative_to(top).as_posix()}"
        for package, top in tops
        if top and path.is_relative_to(top)
    )
    return next(names)


@cache
def _imports_of(file: Path, module: str) -> frozenset[str]:
    """The modules that a file names; `from a import b` may mean the module `a.b`.

    A table of extensions counts too, except those of which a step uses only some.
    """
    parents = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            names.add(source)
            names.update(f"{source}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.keyword) and not module.startswith(_BY_NAME):
            names.update(_modules_of_table(node))
    return frozenset(names)


def _modules_of_table(node: ast.keyword) -> set[str]:
    """The values of `modules={...}`, from which `Kinds` imports its modules."""
    if node.arg != "modules" or not isinstance(node.value, ast.Dict):
        return set()
    constants = (part for part in node.value.values if isinstance(part, ast.Constant))
    return {constant.value for constant in constants if isinstance(constant.value, str)}
