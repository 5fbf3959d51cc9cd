"""What a module does, whatever it and its parts are called: `python -m make.moves REVISION TABLE`.

The table has a line for each module that moved: its name before and after. Written is, for each
file that moved or changed since the revision, the digest of its syntax tree then, with the names of
modules as they are now.
"""

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOVES = ROOT / "tests/data/moves.json"

_MODULE = re.compile(r"\bagentworld(?:\.\w+)+")


def tree_digest(source: str, moves: Mapping[str, str]) -> str:
    """Over the syntax tree: its structure and constants, without imports, docstrings and names."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = _MODULE.sub(lambda found: _moved(found[0], moves), node.value)
        for field in _NAMES & set(node._fields):
            setattr(node, field, None)
    return hashlib.sha256(ast.dump(_WithoutText().visit(tree)).encode()).hexdigest()[:16]


_NAMES = {"arg", "asname", "attr", "id", "name", "names", "kwd_attrs", "rest"}


class _WithoutText(ast.NodeTransformer):
    def visit_Import(self, _node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, _node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)


def _moved(name: str, moves: Mapping[str, str]) -> str:
    """The name now of a module, or of what is in it."""
    package, rest = name, ""
    while package:
        if package in moves:
            return moves[package] + rest
        package, dot, last = package.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return name


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def main(revision: str, table: str) -> None:
    lines = [line.split() for line in Path(table).read_text().splitlines() if line]
    moves = {f"agentworld.{before}": f"agentworld.{after}" for before, after in lines}
    changed = _git("diff", "-M40%", "--diff-filter=MR", "--name-status", revision, "--", "*.py")
    written = {}
    for line in changed.splitlines():
        _, before, *after = line.split("\t")
        digest = tree_digest(_git("show", f"{revision}:{before}"), moves)
        written[after[0] if after else before] = digest
    MOVES.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
