"""Finds names that say how a value came about and not what it is: `lint_names.py FOLDER...`.

A participle, an adverb or a metaphor (`told`, `anew`, `sight`) does not say what a value holds. It
looks at definitions: functions, classes, parameters, variables, attributes, fields, and what a
pattern or an `except` binds.
"""

import ast
import sys
from pathlib import Path

_PARTICIPLES = frozenset(
    "told found made filed meant gone kept shown said seen asked given taken tried heard held"
    " sought wanted answered chosen named listed known touched lasting begun drawn laid written"
    " sent believed bought brought caught coming emptied excused grown leaving looked outdone paid"
    " removing spent swept telling turned acted acting asking became began claimed continued"
    " covered dealt exchanged fetched followed forked going keeping leased located met missed"
    " planned played prepared reached retried rolled speaking spelled staying typed used"
    " working".split()
)
_ADVERBS = frozenset(
    "afterwards again already always among anew anyway away back both either else elsewhere enough"
    " everywhere exactly here into late maybe mine once otherwise ours patiently perhaps seldom"
    " somewhere soon still sure theirs then there thus together too twice under up wherever"
    " yet".split()
)
_SENTENCES = frozenset(
    "came depends each everybody everything go_on goes_on goes_up going_on hand_in hear how"
    " in_our_words in_words knows let_go lets lies me nobody nobody_came say says several shows"
    " silent some somebody something speak stands stays took untold was whatever whichever who whom"
    " whose why".split()
)
_METAPHORS = frozenset(
    "adopter bend book desk door doors entrance era errand essence exotic hopeless house keeper"
    " news night notary pursuit pursuits room rooms sealer seat seats sight slip stranger strays"
    " teller tick ticking ticks trouble troubles turnstile twin twins wander wire wires".split()
)
FORBIDDEN = _PARTICIPLES | _ADVERBS | _SENTENCES | _METAPHORS


class _Definitions(ast.NodeVisitor):
    """The forbidden names that a module defines, each with its line."""

    def __init__(self) -> None:
        self.bad: list[tuple[int, str]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._check(node.name, node.lineno)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self._check(node.arg, node.lineno)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._check(node.id, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store):
            self._check(node.attr, node.lineno)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._check(node.name or "", node.lineno)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._check(node.name or "", node.lineno)
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._check(node.name, node.lineno)
        self.generic_visit(node)

    def _check(self, name: str, line: int) -> None:
        if name.strip("_").lower() in FORBIDDEN:
            self.bad.append((line, name))


def bad_names(path: Path) -> list[str]:
    """One line for each definition of a forbidden name in a Python file."""
    definitions = _Definitions()
    definitions.visit(ast.parse(path.read_text()))
    return [f"{path}:{line}: name what {name} is" for line, name in definitions.bad]


def main(*folders: str) -> int:
    """Prints what it finds; the exit status is 1 where that is something."""
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    lines = [line for file in files for line in bad_names(file)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
