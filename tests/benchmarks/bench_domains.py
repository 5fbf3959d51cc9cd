"""Live domains and their verifiers against their targets: `make bench-domains`.

`python -m benchmarks.bench_domains shell` measures only one part: shell, mcp, terminal or sandbox.
"""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

from agentworld.domains.base import domain_of
from agentworld.recipes.load import load_recipe, recipe_path
from agentworld.reports.targets import NO_TARGETS
from benchmarks.domain_rates import measure_rates, verdicts_per_second
from benchmarks.report import BENCH, PUBLISHED, measure_parts
from benchmarks.targets import DOMAINS
from campaigns.sandbox import campaign
from make.recorded_twice import record_twice
from make.verifier_quality import Quality, measure_quality

_NUM_EPISODES = 60
_AT_ONCE = 3
_NUM_ATTEMPTS = 200
_SIZES = {"1kb": 1_000, "30kb": 30_000}


def main(*chosen_parts: str) -> int:
    """Exit status 1 if a required target is missed."""
    parts = {name: partial(measure_domain, name) for name in DOMAINS}
    return measure_parts("domains", {**parts, "sandbox": sandbox}, chosen_parts, {})


def measure_domain(name: str, folder: Path) -> dict[str, object]:
    """The figures of one domain under its name."""
    domain = domain_of(name)
    rates = asyncio.run(measure_rates(name))
    episodes = asyncio.run(record_twice(name, _NUM_EPISODES, _AT_ONCE))
    quality = measure_quality(domain, episodes)
    (folder / "mistakes.txt").write_text("".join(f"{line}\n" for line in quality.mistakes))
    truths = [turn.first for episode in episodes for turn in episode]
    speeds = {label: verdicts_per_second(domain, truths, size) for label, size in _SIZES.items()}
    print(f"{name}: {quality.replay_agreement.num} of {quality.replay_agreement.total} turns agree")
    figures = {
        **rates._asdict(),
        **_shares(quality),
        "verdicts_per_second": speeds,
        **world_model_figures(name),
    }
    return {name: figures}


def _shares(quality: Quality) -> dict[str, object]:
    names = ("replay_agreement", "verdict_coverage", "second_truth_pass", "tolerated_pass")
    shares = {name: getattr(quality, name) for name in names}
    killed_shares = {kind: share for kind, share in quality.killed.items() if share.total}
    return {
        **{name: share.value for name, share in shares.items()},
        "killed": {kind: share.value for kind, share in killed_shares.items()},
        "num": {
            **{name: share.total for name, share in shares.items()},
            **{kind: share.total for kind, share in killed_shares.items()},
        },
    }


def world_model_figures(name: str) -> dict[str, object]:
    """The figures of the last demo in this domain that has targets; empty if there is none.

    A lead is the difference of two means of exact match, on the same turns.
    """
    paths = [path for folder in (PUBLISHED, BENCH) for path in sorted(folder.glob("demo*.json"))]
    runs = [json.loads(path.read_text()) for path in paths]
    runs = [run for run in runs if run["recipe"] not in NO_TARGETS]
    domains = [load_recipe(recipe_path(run["recipe"])).collect.domain for run in runs]
    if name not in domains:
        return {}
    *_, run = (run for run, domain in zip(runs, domains, strict=True) if domain == name)
    world = run["world_model"]
    best = max(world["sft"]["exact_match"], world["rl"]["exact_match"])
    return {
        "exact_match": best,
        "lead_copy": best - world["baseline"]["copy"]["exact_match"],
        "lead_nearest": best - world["baseline"]["nearest"]["exact_match"],
        "demo": {key: run[key] for key in ("command", "commit")},
    }


def sandbox(folder: Path) -> dict[str, object]:
    """The results of attempts to escape from a sandbox, or to leave traces."""
    report = campaign.run(folder, _NUM_ATTEMPTS, "1")
    for sentence in report.sentences:
        print(sentence, file=sys.stderr)
    return {
        "escape_attempts": report.attempts,
        "escapes": report.escapes,
        "leaks": report.leaks,
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
