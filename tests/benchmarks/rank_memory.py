"""The memory of each process that trains a sharded model (ZeRO stage 3).

`torchrun -m benchmarks.rank_memory BASES FOLDER BYTES` starts them, with that many bytes in a
shard. The memory before the model is loaded does not count: the process trained a tiny one before,
so that everything that is loaded or created once is included.
"""

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from transformers import Qwen3Config, Qwen3ForCausalLM

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.train import sharding, zero
from agentworld.train.distributed import process_group, rank
from agentworld.train.model import ATTENTION, LanguageModel
from agentworld.train.trainer import train_rows
from benchmarks.random_rows import random_rows
from benchmarks.targets import SHARD_BYTES_PER_PARAMETER

_VOCABULARY = 8_192
_ROW_TOKENS, _NUM_ROWS = 64, 3
_RECIPE = NextTokenRecipe(
    stage="cpt", zero_stage=3, tokens_per_batch=_ROW_TOKENS, checkpoint_every=2, packing=False
)


def rank_bytes(folder: Path, num_ranks: int) -> dict[str, float]:
    """The peak bytes per parameter of one of `num_ranks` processes, by moment."""
    bases = {name: _save_base(folder / name, name) for name in ("tiny", "base")}
    out = folder / f"{num_ranks}-ranks"
    out.mkdir()
    # Returns freed memory to the system at once.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
    shard_bytes = int(SHARD_BYTES_PER_PARAMETER * bases["base"])
    module = ("-m", "benchmarks.rank_memory", str(folder), str(out), str(shard_bytes))
    subprocess.run([*torchrun, str(num_ranks), *module], check=True, env=environment)
    peaks = [json.loads(path.read_text()) for path in out.glob("rank-*.json")]
    assert len(peaks) == num_ranks
    return {name: round(max(peak[name] for peak in peaks) / bases["base"], 2) for name in peaks[0]}


def _save_base(folder: Path, size: str) -> int:
    """Writes random weights; returns their number."""
    width, layers = (512, 16) if size == "base" else (64, 2)
    heads = {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": width // 8}
    config = Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        tie_word_embeddings=True,
        **heads,
    )
    model = Qwen3ForCausalLM(config)
    model.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


@process_group()
def measure(bases: Path, out: Path, shard_bytes: int) -> None:
    """In one process; writes its peaks above the initial memory."""
    zero.SHARD_BYTES = sharding.SHARD_BYTES = shard_bytes
    _train(bases / "tiny", out / "tiny", lambda _name, work: work())
    gc.collect()
    peaks, before = {}, _resident_bytes("VmRSS")

    def take(name: str, work: Callable[[], object]) -> object:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        value = work()
        peaks[name] = _resident_bytes("VmHWM") - before
        return value

    _train(bases / "base", out / "base", take)
    (out / f"rank-{rank()}.json").write_text(json.dumps(peaks))


def _train(base: Path, out: Path, take: Callable[[str, Callable[[], object]], object]) -> None:
    rows = random_rows([_ROW_TOKENS] * _NUM_ROWS, _VOCABULARY) if rank() == 0 else []
    model = take("load", lambda: sharding.load_in_parts(base, ATTENTION))
    language_model = LanguageModel(model, None)
    take("training", lambda: train_rows(language_model, _RECIPE, rows, out, ignore_progress))
    take("save", lambda: sharding.save_model(model, out / "model"))


def _resident_bytes(name: str) -> int:
    (kibibytes,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kibibytes) * 1024


if __name__ == "__main__":
    measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
