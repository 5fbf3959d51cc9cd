"""Which code a step runs.

A step's code is its own module and every module of ours that it can reach by imports, so
that a change of the audit does not train a model again.
"""

import ast
import subprocess
from functools import cache
from pathlib import Path

from agentworld.records.base import Digest, digest_file, digest_json

_PACKAGE = Path(__file__).parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_PROSE = (".txt", ".jinja")


@cache
def code_digest(step: str) -> Digest:
    """Over the source files that a step reaches, and the texts beside them."""
    modules = _reached_from(f"{_PACKAGE.name}.steps.{step}")
    texts = {text for file in modules for text in file.parent.iterdir() if text.suffix in _PROSE}
    files = sorted(modules | texts)
    return digest_json({path.relative_to(_PACKAGE).as_posix(): digest_file(path) for path in files})


def commit() -> str:
    """The commit of the checkout, `-dirty` where files were changed since; else `unknown`."""
    command = "git describe --always --dirty --abbrev=40 --exclude *".split()
    try:
        completion = subprocess.run(
            command, cwd=_CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return "unknown"
    return completion.stdout.strip() or "unknown"


def _reached_from(module: str) -> set[Path]:
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if file is not None and name not in files:
            files[name] = file
            waiting += _imports_of(file)
    return set(files.values())


def _file_of(module: str) -> Path | None:
    package, *rest = module.split(".")
    path = _PACKAGE.joinpath(*rest)
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if package == _PACKAGE.name and file.is_file()), None)


@cache
def _imports_of(file: Path) -> frozenset[str]:
    """Modules that a file names; `from a import b` may mean the module `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)
