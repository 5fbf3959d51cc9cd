"""The figures of each benchmark, their meaning, and their targets.

The benchmarks take their targets from here, and docs/benchmarks.md its tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentworld.reports.summary import Summary
from agentworld.reports.targets import MOST_SECONDS, Figure
from agentworld.reports.targets import figures_of as figures_of_summary

Measured = Mapping[str, Any]
"""The JSON of a benchmark."""


class Target(NamedTuple):
    """A figure of a benchmark's JSON; without `must` and `goal` it is for comparison only."""

    name: str
    """Its keys, joined by dots."""
    meaning: str
    """Empty for a figure that has its own table."""
    must: float | None = None
    goal: float | None = None
    at_most: bool = False

    def figure(self, measured: Measured) -> Figure:
        """Raises KeyError if it was not measured."""
        value = _number(value_at(measured, self.name))
        return Figure(self.name, value, self.must, self.goal, self.at_most)


def _most(name: str, must: float, meaning: str) -> Target:
    return Target(name, meaning, must, at_most=True)


def _audit(database: str) -> Sequence[Target]:
    return (
        _most(f"{database}.forward_p99_ms", 100, "`audit agent`, 500 random agents"),
        _most(f"{database}.inverse_p99_ms", 100, "`audit simulator`, 500 random simulators"),
        _most(
            f"{database}.register_seconds",
            5,
            "signs the edge of the agent with a tenth of all episodes, and registers its version",
        ),
        _most(f"{database}.problems", 0, "problems found in a sample of untouched runs"),
        Target(
            f"{database}.verify_steps_per_second",
            "reads and checks all steps of that agent's run again",
            must=50_000,
        ),
    )


DOMAINS = ("shell", "mcp", "terminal")
DOMAIN_FIGURES: Mapping[str, tuple[str, float | None]] = {
    "steps_per_second_1": ("explorers' steps in one environment", None),
    "steps_per_second_8": ("the same in eight side by side, all together", None),
    "reset_p50_seconds": ("a new episode, median", None),
    "memory_mib": ("an environment with an open episode", None),
    "replay_agreement": ("the same actions show the same bytes again", None),
    "verdict_coverage": ("turns with a verdict", 0.5),
    "second_truth_pass": ("second recordings that pass", 0.995),
    "tolerated_pass": ("other times, ids, names and paths that pass", 0.995),
    "killed.value": ("another value or word fails", 0.95),
    "killed.key": ("another key or name fails", 0.95),
    "killed.order": ("another order fails", 0.95),
    "killed.missing_line": ("a missing line or field fails", 0.95),
    "killed.stale_state": ("what an earlier change makes untrue fails", 0.95),
    "killed.success_for_error": ("a success in place of an error fails", 0.95),
    "killed.error_for_success": ("an error in place of a success fails", 0.95),
    "killed.copied_state": ("the observation before fails", 0.95),
    "verdicts_per_second.1kb": ("of one core, 1 KB", 5_000),
    "verdicts_per_second.30kb": ("of one core, 30 KB", 200),
    "exact_match": ("of the demo's world model", None),
    "lead_copy": ("its lead over the baseline `copy`", None),
    "lead_nearest": ("its lead over the baseline `nearest`", None),
}
"""The figures of each domain: their meaning, and their minimum."""


def _domain(name: str) -> Sequence[Target]:
    return [Target(f"{name}.{key}", "", must) for key, (_, must) in DOMAIN_FIGURES.items()]


SHARD_BYTES_PER_PARAMETER = 0.3
"""For the model that `rank_memory` measures; a large model's shard is 5 GB."""
MOST_RANK_BYTES = {
    num_ranks: round(24 / num_ranks + SHARD_BYTES_PER_PARAMETER, 1) for num_ranks in (2, 3)
}
"""Per parameter: 24 over all processes, and one shard."""
_MOMENTS = {"load": "loading", "training": "training", "save": "saving"}

TARGETS: Mapping[str, Sequence[Target]] = {
    "simulator": (
        Target("ratio.64", "steps per second over `openenv`, 64 episodes", must=1),
        Target("ratio.1000", "the same, 1,000 episodes", must=1),
        Target("ratio.1", "the same, one episode"),
        Target("ratio_async.64", "steps per second over `openenv_async`, 64 episodes"),
        Target("ratio_async.1000", "the same, 1,000 episodes"),
        _most("added_p50_ms", 1, "additional time of a step with one episode, ms"),
        Target("fsync_p50_ms", "the disk's part of it: an append with fdatasync, ms"),
        _most("episode_kib", 50, "memory of an open episode with 12 turns, KiB"),
        Target("vllm_engine_ms", "work of vLLM in a step, ms: with less it is no test", must=100),
        Target("vllm_ratio", "steps per second over vLLM without the service", must=0.97),
        Target("prefix_hit_of_bound", "hits of vLLM's prefix cache over the most possible", 0.95),
    ),
    "protocols": (
        _most("storm.healthy_errors", 0, "errors of the healthy clients"),
        _most("storm.server_errors", 0, "answers of 500 and more"),
        _most("storm.tracebacks", 0, "tracebacks in the service's log"),
        _most("storm.memory.ratio", 1.1, "memory in the last third of the storm over the first"),
        _most("storm.p99_ratio", 2, "the healthy clients' p99 over that of the minute before"),
    ),
    "operator": (
        _most("reconcile_p99_seconds", 1, "20 creations a second, 300 of them"),
        Target("reconcile_p50_seconds", "the median of the same"),
        Target("plain_kopf_reconcile_p99_seconds", "the same by plain kopf handlers"),
        Target("converge_seconds.100", "100 Simulators at once"),
        Target("converge_seconds.300", "300 at once"),
        Target("converge_seconds.1000", "1,000 at once"),
        Target("plain_kopf_converge_seconds.1000", "1,000 at once by plain kopf handlers"),
        Target("requests_per_object", "requests to the API server, reads and watches too"),
        _most("memory_mib", 300, "after 1,000 Simulators"),
        _most("idle_writes_per_minute", 0, "except leases, with 100 Simulators"),
        _most("failover_seconds", 30, "from the leader's SIGKILL to the next leader's first write"),
        _most("verify_of_load", 0.1, "verification over the time until the engine is ready"),
        Target("verify_of_weights_load", "verification over vLLM's reading of the weights alone"),
        Target("fetch.network.seconds", "4 GiB at 10 Gbit/s, hashed and written as it arrives"),
        Target("fetch.network.without_hash_seconds", "the same without hashes"),
        _most("fetch.network.hash_share", 0.1, "the part of this that the hashes take"),
        Target("fetch.disk.seconds", "4 GiB from a disk that the page cache holds"),
        Target("fetch.disk.hash_share", "the part of this that the hashes take"),
        _most("fetch.second_pod_seconds", 1, "a second pod that shares the claim"),
    ),
    "pipelines": (
        _most("overhead_p50_seconds", 2, "the overhead of a step, median"),
        Target("overhead_p99_seconds", "the same, p99: the first start of a step with torch"),
        Target("plain_process_p50_seconds", "a process that only imports the step"),
        Target("all_reused_seconds", "the whole job with nothing changed"),
        Target("first_run_seconds", "the whole job from nothing"),
        _most("bytes_copied_between_steps", 0, "steps pass on folders by name"),
        Target("bytes_alike_in_steps", "equal files in several steps: complete checkpoints"),
    ),
    "audit": (
        *_audit("sqlite"),
        *_audit("postgresql"),
        Target("mlflow_forward_ms", "MLflow's own: a version with its run"),
        Target("mlflow_inverse_ms", "MLflow's own: versions by the tag of a simulator"),
    ),
    "domains": (
        *(target for name in DOMAINS for target in _domain(name)),
        Target("escape_attempts", "attempts to escape from a sandbox", must=100),
        _most("escapes", 0, "attempts that reached, saw or did what is the machine's"),
        _most("leaks", 0, "attempts that left something to the machine or a later episode"),
    ),
    "data": (
        Target("ratio_map_light", "seconds of `datasets.map` over ours: filter, mask", 1.5, 3),
        Target("ratio_map_all", "the same with near-duplicates and leaks", must=1),
        Target("digests_equal", "1: one worker, several and `datasets.map` make equal pools", 1),
        _most("growth_100k_over_10k", 11, "seconds for 100,000 trajectories over 10,000"),
        _most("peak_pss_mib", 4_096, "the most memory of all processes, MiB"),
        Target("dedup_recall", "near-duplicates (Jaccard 0.9) that are removed", must=0.99),
        _most("dedup_false", 0.01, "pairs at Jaccard 0.5 that are removed"),
        Target("leak_recall", "trajectories with half of a held-out one that are removed", must=1),
        _most("leak_false", 0.01, "other trajectories that are removed"),
        Target("secret_recall", "planted secrets that are redacted", must=0.95),
        _most("hashes_redacted", 0, "hashes of commits and files that are redacted by mistake"),
        _most("guide_seconds", 300, "every command of the guide From your logs, 2,000 logs"),
    ),
    "train": (
        Target("ratio_plain", "tokens/s over a plain loop with the same batches", must=0.95),
        Target("ratio_trl", "tokens/s over TRL's SFTTrainer with its defaults", must=1.5),
        Target("ratio_padded", "tokens/s over our own padded batches"),
        _most("padding_share", 0.03, "tokens of a batch that belong to no sample"),
        _most("packing_loss_diff", 1e-5, "loss of packed rows against one at a time, float32"),
        _most("packing_grad_diff", 1e-4, "gradient of the same, norm of the difference"),
        Target("resume_bit_equal", "1: a training that was killed ends with equal weights", must=1),
        _most("planner_memory_error", 0.15, "planned over measured peaks of a GPU (gpu), largest"),
        *(
            _most(
                f"rank_bytes_per_parameter.{num_ranks}.{moment}",
                most,
                f"the most memory of one of {num_ranks} processes with ZeRO 3, {when}",
            )
            for num_ranks, most in MOST_RANK_BYTES.items()
            for moment, when in _MOMENTS.items()
        ),
    ),
    "gpu": (
        Target(
            "cpt.whole_8k_packed.mfu", "0.6 billion parameters, rows of 8,192 tokens", goal=0.45
        ),
        Target("flash-attention.whole_8k_packed.mfu", "the same, FlashAttention 4", goal=0.45),
        Target("packing.gradient_difference", "norm of packed minus apart over apart, bfloat16"),
        Target("flash-attention.gradient_difference", "the same, FlashAttention 4"),
        Target("full-8b.peak_gib", "all of 8 billion parameters, batches of 8,192 tokens, GiB"),
        Target("lora-8b.peak_gib", "an adapter beside them, batches of 8,192 tokens, GiB"),
        Target("gspo.peak_gib", "GSPO of 0.6 billion parameters, GiB"),
        Target("resume.largest_difference", "weights after a kill against weights without one"),
        _most("resume-deterministic.different_weights", 0, "the same by deterministic kernels"),
    ),
}
"""By benchmark; those of the demo are in its report."""


def figures_of(name: str, measured: Measured, *, is_part: bool = False) -> list[Figure]:
    """The figures of a benchmark with targets.

    Raises KeyError if one was not measured, unless only a part of the benchmark ran.
    """
    if name == "demo":
        return _of_demo(measured)
    return [
        target.figure(measured)
        for target in TARGETS.get(name, ())
        if target.must is not None and (not is_part or was_measured(measured, target.name))
    ]


def value_at(measured: Measured, name: str) -> Any:
    """The value at a dotted name; raises KeyError if there is none."""
    if name in measured:
        return measured[name]
    key, dot, rest = name.partition(".")
    if not dot:
        raise KeyError(name)
    inner = measured[key]
    if isinstance(inner, list):
        inner = dict(_by_index(inner))
    if not isinstance(inner, Mapping):
        raise KeyError(name)
    return value_at(inner, rest)


def _by_index(values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(number), value) for number, value in enumerate(values))


def was_measured(measured: Measured, name: str) -> bool:
    """Whether there is a value at a dotted name."""
    try:
        value_at(measured, name)
    except KeyError:
        return False
    return True


def _number(value: Any) -> float:
    """A list, such as of errors, counts by its length."""
    return float(len(value) if isinstance(value, list | tuple) else value)


def _of_demo(measured: Measured) -> list[Figure]:
    summary = Summary.model_validate({name: measured[name] for name in Summary.model_fields})
    most = MOST_SECONDS.get(summary.recipe)
    wall = Figure("wall time", measured["wall_seconds"], must=most, at_most=True, unit="s")
    return [*figures_of_summary(summary), wall]
