"""Prints how large product and tests are, by folder: lines of code, docstrings, statements.

A line of code is neither blank nor a comment nor part of a docstring; docstrings are counted
beside it. Statements are those of the syntax tree, so that their layout does not matter. Shell
scripts are lines that are neither blank nor comments; the charts' templates are lines as they
stand. It reads files alone, hence of any tree: `count_lines.py --json FOLDER`.
"""

import argparse
import ast
import io
import json
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PRODUCT = ("platform", "operators", "pipelines", "tools")
TESTS = "tests"
TEMPLATES = "charts/*/templates"
UNITS = ("files", "code", "docstrings", "statements", "templates")

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    sizes = count_tree(arguments.root)
    sys.stdout.write(f"{json.dumps(sizes, indent=2) if arguments.json else table(sizes)}\n")


def count_tree(root: Path) -> dict[str, dict[str, dict[str, int]]]:
    """The sizes of each folder of product and tests, with their totals."""
    product: dict[str, Counter[str]] = {}
    for top in PRODUCT:
        product |= _count_folders(root, root / top)
    for folder in sorted(root.glob(TEMPLATES)):
        files = [path for path in folder.rglob("*") if path.is_file()]
        num_lines = sum(len(path.read_text().splitlines()) for path in files)
        product[str(folder.relative_to(root))] = Counter(files=len(files), templates=num_lines)
    tests = _count_folders(root, root / TESTS)
    return {"product": _with_total(product), "tests": _with_total(tests)}


def count_python(source: str) -> Counter[str]:
    tree = ast.parse(source)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    docstrings = [node for node in statements if _is_docstring(node)]
    of_docstrings = {line for node in docstrings for line in _lines_of(node)}
    lines = source.splitlines()
    nonblank = {number for number, line in enumerate(lines, 1) if line.strip()}
    return Counter(
        files=1,
        code=len(_lines_with_tokens(source) & nonblank - of_docstrings),
        docstrings=len(of_docstrings & nonblank),
        statements=len(statements) - len(docstrings),
    )


def table(sizes: dict[str, dict[str, dict[str, int]]]) -> str:
    rows = [f"{'':42}" + "".join(f"{unit:>12}" for unit in UNITS)]
    for part, folders in sizes.items():
        rows.append(part)
        for name, size in folders.items():
            rows.append(f"  {name:40}" + "".join(f"{size[unit]:12,}" for unit in UNITS))
    return "\n".join(rows)


def _count_folders(root: Path, top: Path) -> dict[str, Counter[str]]:
    """By folders at most three deep: what is deeper counts with the third."""
    sizes: dict[str, Counter[str]] = {}
    for path in sorted(top.rglob("*")):
        size = _count_file(path)
        if size is not None:
            folder = Path(*path.relative_to(root).parts[:-1][:3]).as_posix()
            sizes.setdefault(folder, Counter()).update(size)
    return sizes


def _count_file(path: Path) -> Counter[str] | None:
    if path.suffix == ".py" and path.is_file():
        return count_python(path.read_text())
    if path.suffix == ".sh" and path.is_file():
        lines = [line.strip() for line in path.read_text().splitlines()]
        return Counter(files=1, code=sum(line[:1] not in ("", "#") for line in lines))
    return None


def _with_total(folders: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    total: Counter[str] = Counter()
    for size in folders.values():
        total.update(size)
    return {name: _in_units(size) for name, size in [*folders.items(), ("total", total)]}


def _in_units(size: Counter[str]) -> dict[str, int]:
    return {unit: size[unit] for unit in UNITS}


def _is_docstring(node: ast.stmt) -> bool:
    """Also of a field: a text that nothing uses."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _lines_with_tokens(source: str) -> set[int]:
    return {line for token in _tokens(source) for line in range(token.start[0], token.end[0] + 1)}


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            yield token


if __name__ == "__main__":
    main()
