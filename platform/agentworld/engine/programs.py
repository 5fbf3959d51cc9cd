"""The programs that can serve a checkpoint: their command lines, settings and versions."""

import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from pydantic import ValidationError

import agentworld
from agentworld.engine.base import EngineKind
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.base import first_problem
from agentworld.records.simulator import EnginePin

_PAGE_TOKENS = 32
_CACHE_BLOCKS = "--cb-num-blocks"
_BATCH_TOKENS = "--cb-max-batch-tokens"

INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR"),
        *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    }
)
"""Variables that every program inherits if they are set: paths, the user and the devices."""

_FIXED_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PYTHONNOUSERSITE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}

# Otherwise vLLM reports no cached tokens. It does not affect answers, so it is not pinned.
_PROMPT_TOKENS_DETAILS = "--enable-prompt-tokens-details"


class Program(NamedTuple):
    """A server with an OpenAI-compatible API that can be started here."""

    distributions: tuple[str, ...]
    """The distributions that have it, each with the extras for serving."""
    command: tuple[str, ...]
    """The command line up to the model's folder."""
    arguments: Callable[[EngineRecipe, int], tuple[str, ...]]
    """Arguments from the recipe and the context length that affect answers; they are pinned."""
    environment: Callable[[], dict[str, str]]
    """Environment variables for this machine, which are not pinned."""
    limits: Callable[[int], tuple[str, ...]]
    """Arguments from the context length if `arguments` do not have it; a manifest has it anyway."""
    fields: Mapping[str, str]
    """The recipe fields that a pin has only as arguments, by the name of the argument."""


def engine_version(kind: EngineKind) -> str:
    """The installed version of the program; raises InputError if it is not installed."""
    name = installed_as(kind).name
    return f"{name} {importlib.metadata.version(name)}"


def installed_as(kind: EngineKind) -> Requirement:
    """The program's distribution; raises InputError if it is not installed."""
    for distribution in map(Requirement, program(kind).distributions):
        with suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.distribution(distribution.name)
            return distribution
    raise InputError(f"the engine {kind} is not installed here; install it or name another kind")


def is_installed(kind: EngineKind) -> bool:
    """Whether the program can be started here."""
    try:
        installed_as(kind)
    except InputError:
        return False
    return True


def engine_arguments(recipe: EngineRecipe, context_tokens: int) -> tuple[str, ...]:
    """The arguments that affect the engine's answers; they are pinned."""
    return program(recipe.kind).arguments(recipe, context_tokens)


def engine_environment(recipe: EngineRecipe) -> dict[str, str]:
    """The engine's environment variables, without the `INHERITED` ones."""
    return _FIXED_ENVIRONMENT | program(recipe.kind).environment() | recipe.environment


def recipe_of(pin: EnginePin) -> EngineRecipe:
    """The recipe of a pinned engine, except the number of concurrent requests.

    Raises InputError for an engine that no recipe of this release describes.
    """
    fields = program(pin.kind).fields
    options = {fields[name]: value for name, value in pairwise(pin.arguments) if name in fields}
    shared = pin.model_dump(include={"kind", "dtype", "quantisation", "parallelism", "environment"})
    try:
        return EngineRecipe.model_validate(shared | options)
    except ValidationError as error:
        raise InputError(
            f"the manifest's engine cannot be started here: {first_problem(error)}; serve it with"
            " the release that pinned it, or pin again"
        ) from error


def program(kind: EngineKind) -> Program:
    """The program of a kind; raises InputError for a third-party endpoint."""
    if kind not in _PROGRAMS:
        raise InputError(f"an engine of kind {kind} is not started here; give its url")
    return _PROGRAMS[kind]


def _transformers_arguments(recipe: EngineRecipe) -> tuple[str, ...]:
    return (
        "--continuous-batching",
        *(_CACHE_BLOCKS, str(recipe.cache_blocks)),
        *(_BATCH_TOKENS, str(recipe.batch_tokens)),
        # pages about as long as a turn, so that the steps of an episode share cached pages
        *("--cb-block-size", str(_PAGE_TOKENS)),
        *("--device", "auto" if has_gpu() else "cpu"),
        *("--dtype", recipe.dtype),
    )


def _transformers_environment() -> dict[str, str]:
    # A thread that waits for others keeps its core busy. If two engines (a world's and an agent's)
    # have a thread for each core, both are twenty times slower.
    environment = {"PYTHONPATH": str(Path(agentworld.__file__).parents[1])}
    if has_gpu():
        return environment
    return environment | {"OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 2))}


def _vllm_arguments(recipe: EngineRecipe, context_tokens: int) -> tuple[str, ...]:
    # An engine that is not installed here runs in its own image, on a machine with the devices.
    eager = is_installed("vllm") and not has_gpu()
    return (
        *("--dtype", recipe.dtype),
        *("--max-model-len", str(context_tokens)),
        *(("--quantization", recipe.quantisation) if recipe.quantisation else ()),
        *(("--tensor-parallel-size", str(recipe.parallelism)) if recipe.parallelism > 1 else ()),
        *(("--enforce-eager",) if eager else ()),
    )


def _vllm_environment() -> dict[str, str]:
    if has_gpu():
        return {}
    environment = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1"}
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    # Without it the first request takes 13 s.
    return environment | ({"LD_PRELOAD": str(openmp)} if openmp.exists() else {})


def has_gpu() -> bool:
    """Whether an engine here computes on a GPU."""
    return Path("/dev/nvidia0").exists()


_PROGRAMS: dict[EngineKind, Program] = {
    "transformers-serve": Program(
        distributions=("transformers[serving]",),
        command=("-m", "agentworld.engine.transformers_server"),
        arguments=lambda recipe, context_tokens: _transformers_arguments(recipe),
        environment=_transformers_environment,
        limits=lambda context_tokens: ("--context-tokens", str(context_tokens)),
        fields={_CACHE_BLOCKS: "cache_blocks", _BATCH_TOKENS: "batch_tokens"},
    ),
    # `vllm serve` fails if the distribution is vllm-cpu.
    "vllm": Program(
        distributions=("vllm", "vllm-cpu"),
        command=("-m", "vllm.entrypoints.openai.api_server", _PROMPT_TOKENS_DETAILS, "--model"),
        arguments=_vllm_arguments,
        environment=_vllm_environment,
        limits=lambda context_tokens: (),
        fields={},
    ),
}
