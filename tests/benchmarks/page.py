"""Writes the tables of docs/benchmarks.md: `python -m benchmarks.page PAGE FIGURES`.

PAGE is the file, FIGURES the folder with a JSON file of each benchmark. A table is between two
comments of the page, and is replaced if the benchmark has a JSON file. The first table has a row
for each benchmark.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentworld.reports.targets import Figure
from benchmarks.targets import (
    DOMAIN_FIGURES,
    DOMAINS,
    TARGETS,
    Measured,
    figures_of,
    value_at,
    was_measured,
)

_BLOCK = re.compile(r"(<!-- figures (\w+):.*? -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)
_ALL = "all"
_BY_HAND = re.compile(r"^Missed: (.+)\.$", re.MULTILINE)
_DIRTY = "-dirty"


class Grid(NamedTuple):
    """A table of figures: the keys of a row and of other rows differ in one part.

    Rows and columns without measurements are left out.
    """

    head: str
    """The heading of the rows' labels."""
    rows: Mapping[str, str]
    """The differing part of each row, by its label."""
    columns: Mapping[str, str]
    """The name of a figure by the column's heading; `{}` is replaced by the row's part."""
    absent: str = ""
    """The text of a cell without a figure; with it, no row is left out."""


def _rows(*names: str) -> Mapping[str, str]:
    return {f"`{name}`": name for name in names}


def _domain_label(name: str) -> str:
    meaning, must = DOMAIN_FIGURES[name]
    bound = "" if must is None else f"; {Figure(name, must, must).wants(must)}"
    return f"`{name}`: {meaning}{bound}"


_SERVERS = ("openenv", "openenv_async", "ours")
_STEPS = (
    "collect prepare cpt sft rl evaluate gate register simulate deploy imitate open_run agent"
    " close_run validate register_agent audit"
).split()
_DATABASES = {"SQLite": "sqlite", "PostgreSQL": "postgresql", "MLflow alone": "mlflow"}
GRIDS: Mapping[str, Sequence[Grid]] = {
    "demo": (Grid("step", _rows(*_STEPS), {"seconds": "seconds.{}"}),),
    "simulator": (
        Grid(
            "server, open episodes",
            {f"{name}, {n:,}": f"{name}.{n}" for n in (1, 64, 1_000) for name in _SERVERS},
            {
                "steps/s": "{}.steps_per_second",
                "lowest to highest round": "{}.steps_per_second_interval",
                "p50 ms": "{}.p50_ms",
                "p99 ms": "{}.p99_ms",
                "processor, us a step": "{}.server_us",
            },
        ),
    ),
    "protocols": (
        Grid(
            "protocol",
            _rows("core", "openenv", "http", "openenv_http", "openai", "mcp", "gymnasium"),
            {
                "steps/s": "rates.{}.steps_per_second",
                "lowest to highest round": "rates.{}.steps_per_second_interval",
                "p50 ms": "rates.{}.p50_ms",
                "p99 ms": "rates.{}.p99_ms",
                "added p50 ms": "added_p50_ms.{}.median",
                "of the core": "ratio.{}.median",
                "processor, us a step": "rates.{}.server_us",
            },
        ),
        Grid(
            "healthy clients",
            {"alone": "alone", "in the storm": "among"},
            {"p50 ms": "storm.{}.p50_ms", "p99 ms": "storm.{}.p99_ms"},
        ),
    ),
    "operator": (
        Grid(
            "phase of a cold start",
            _rows("pod", "verifier", "verify", "engine", "load", "compile", "ready", "all"),
            {"seconds": "cold_start_seconds.{}"},
        ),
    ),
    "audit": tuple(
        Grid(
            f"{label}, by episodes",
            {"10,000": "0", "100,000": "1", "1 million": "2"},
            {
                "forward p99 ms": f"sizes.{{}}.{name}.forward.p99_ms",
                "inverse p99 ms": f"sizes.{{}}.{name}.inverse.p99_ms",
                "register s": f"sizes.{{}}.{name}.register_seconds",
                "close s": f"sizes.{{}}.{name}.close_seconds",
                "steps verified/s": f"sizes.{{}}.{name}.verify_steps_per_second",
                "first question of a process ms": f"sizes.{{}}.{name}.first_forward_ms",
            },
        )
        for label, name in _DATABASES.items()
    ),
    "recordings": (
        Grid(
            "model or baseline",
            _rows("copy", "repeat", "frequent", "nearest", "cpt", "sft"),
            {
                name.replace("_", " "): f"scores.{{}}.{name}"
                for name in ("exact_match", "token_f1", "rouge_l", "json_keys", "json_values")
            },
        ),
    ),
    "train": (
        Grid(
            "trainer",
            _rows("ours", "padded", "plain", "trl"),
            {
                "tokens/s": "tokens_per_second.{}",
                "lowest to highest round": "tokens_per_second_interval.{}",
            },
        ),
    ),
    "gpu": (
        Grid(
            "training",
            {
                "0.6 B, rows of 8,192 tokens": "cpt.whole_8k_packed",
                "0.6 B, rows of 8,192 tokens, FlashAttention 4": "flash-attention.whole_8k_packed",
                "0.6 B, rows of 8,192 tokens, activations recomputed": (
                    "cpt.whole_8k_packed_recomputed"
                ),
                "0.6 B, rows of 8,192 tokens, activations recomputed, FlashAttention 4": (
                    "flash-attention.whole_8k_packed_recomputed"
                ),
                "0.6 B, rows of all lengths": "cpt.varied_packed",
                "0.6 B, rows of all lengths, FlashAttention 4": "flash-attention.varied_packed",
                "0.6 B, rows of all lengths, nothing compiled": "cpt.varied_packed_not_compiled",
                "0.6 B, rows of all lengths, padded": "cpt.varied_padded",
                "8 B, rows of 8,192 tokens, activations recomputed": "full-8b",
                "an adapter of 8 B, the same, nothing compiled": "lora-8b",
            },
            {
                "tokens/s": "{}.tokens_per_second",
                "MFU": "{}.mfu",
                "mean length": "{}.mean_length_seen",
                "most memory GiB": "{}.peak_gib",
            },
        ),
    ),
    "domains": (
        Grid(
            "figure",
            {_domain_label(name): name for name in DOMAIN_FIGURES},
            {name: f"{name}.{{}}" for name in DOMAINS},
            absent="not measured",
        ),
    ),
    "data": (
        Grid(
            "trajectories",
            {"10,000": "10000", "100,000": "100000"},
            {
                "import s": "sizes.{}.import_seconds",
                "prepare s": "sizes.{}.prepare_seconds",
                "most memory MiB": "sizes.{}.peak_pss_mib",
            },
        ),
    ),
}


def page(text: str, measured: Mapping[str, Measured]) -> str:
    """The page with the tables of the measured benchmarks, by name.

    Missed targets of an earlier run are in its text, on a line that begins with `Missed:`.
    """

    def block(match: re.Match[str]) -> str:
        begin, name, old_table, end = match.groups()
        if name == _ALL:
            return f"{begin}{_summary(text, measured)}{end}"
        return f"{begin}{_tables(name, measured[name]) if name in measured else old_table}{end}"

    return _BLOCK.sub(block, text)


def _summary(text: str, measured: Mapping[str, Measured]) -> str:
    rows = [("benchmark", "command", "machine", "missed")]
    for _, name, old_table, _ in _BLOCK.findall(text):
        if name == _ALL:
            continue
        link = f"[{name}](#{name})"
        if name in measured:
            figures = measured[name]
            rows.append((link, f"`{figures['command']}`", _machine(figures), _missed(figures)))
        else:
            missed_line = _BY_HAND.search(old_table)
            reason = f"an earlier run: {missed_line[1]}" if missed_line else "not measured since"
            rows.append((link, f"`make bench-{name}`", "see there", reason))
    return _table(rows)


def _tables(name: str, measured: Measured) -> str:
    load = measured["machine"]["load_average"]
    text = (
        f"Measured by `{measured['command']}` at commit {_commit(measured)} on"
        f" {_machine(measured)}, with a load of {load:.1f} at the start. Missed:"
        f" {_missed(measured)}.\n"
    )
    tables = [(_figures(name, measured), "---")]
    tables += [(_cells(grid, measured), "---:") for grid in GRIDS.get(name, ())]
    return "\n".join([text, *(_table(rows, rule) for rows, rule in tables if len(rows) > 1)])


def _figures(name: str, measured: Measured) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("figure", "value", "must", "goal", "what it is")]
    if name not in TARGETS:
        rows += [_figure(figure, figure.text, "") for figure in figures_of(name, measured)]
        return [row[:-1] for row in rows]  # if none of them has a meaning
    for target in [target for target in TARGETS[name] if target.meaning]:
        label = f"`{target.name}`"
        if was_measured(measured, target.name):
            figure = target.figure(measured)._replace(name=label)
            value = _text(figure.value) + _interval(measured, target.name)
            rows.append(_figure(figure, value, target.meaning))
        else:
            rows.append((label, "not measured", "", "", target.meaning))
    return rows


def _figure(figure: Figure, value: str, meaning: str) -> tuple[str, ...]:
    must = "" if figure.must is None else figure.wants(figure.must)
    goal = "" if figure.goal is None else figure.wants(figure.goal)
    if must and not figure.holds:
        must += ": **missed**"
    if figure.goal is not None:
        goal += ": reached" if figure.keeps(figure.goal) else ": not reached"
    return figure.name, value, must, goal, meaning


def _interval(measured: Measured, name: str) -> str:
    key, dot, rest = name.partition(".")
    interval = f"{key}_interval{dot}{rest}"
    return f" ({_cell(measured, interval)})" if was_measured(measured, interval) else ""


def _cells(grid: Grid, measured: Measured) -> list[tuple[str, ...]]:
    columns = {
        head: name
        for head, name in grid.columns.items()
        if any(was_measured(measured, name.format(row)) for row in grid.rows.values())
    }
    rows = [(grid.head, *columns)]
    for label, row in grid.rows.items():
        names = [name.format(row) for name in columns.values()]
        texts = [_cell(measured, name) + _interval(measured, name) for name in names]
        cells = [text or grid.absent for text in texts]
        if any(cells):
            rows.append((label, *cells))
    return rows


def _cell(measured: Measured, name: str) -> str:
    if not was_measured(measured, name):
        return ""
    value: Any = value_at(measured, name)
    return " to ".join(map(_text, value)) if isinstance(value, list | tuple) else _text(value)


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _machine(measured: Measured) -> str:
    machine = measured["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB"


def _commit(measured: Measured) -> str:
    commit = measured["commit"]
    suffix = " with uncommitted changes" if commit.endswith(_DIRTY) else ""
    return f"`{commit.removesuffix(_DIRTY)[:12]}`{suffix}"


def _missed(measured: Measured) -> str:
    return ", ".join(f"`{name}`" for name in measured["missed"]) or "nothing"


def _table(rows: Sequence[Sequence[str]], rule: str = "---") -> str:
    """The first row is the heading, and `rule` aligns all columns but the first."""
    head, *body = rows
    lines = [head, ["---", *[rule] * (len(head) - 1)], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read_figures(folder: Path) -> dict[str, Measured]:
    """The JSON of each benchmark that has a file."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def main(path: str, figures: str) -> None:
    """Replaces the tables of the page."""
    file = Path(path)
    file.write_text(page(file.read_text(), read_figures(Path(figures))))


if __name__ == "__main__":
    main(*sys.argv[1:])
