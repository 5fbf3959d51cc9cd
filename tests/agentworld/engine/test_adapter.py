import json

import pytest

from agentworld.engine.adapter import ADAPTER, adapter_arguments, has_adapter
from agentworld.errors import InputError


def add_adapter(folder, **config):
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    return folder


def test_a_model_without_an_adapter_adds_no_arguments(tmp_path):
    assert not has_adapter(tmp_path)
    assert adapter_arguments("transformers-serve", tmp_path) == ()


@pytest.mark.parametrize(("rank", "max_rank"), [(1, "8"), (8, "8"), (9, "16"), (512, "512")])
def test_vllms_max_lora_rank_covers_the_adapters_rank(tmp_path, rank, max_rank):
    arguments = adapter_arguments("vllm", add_adapter(tmp_path, r=rank))
    assert arguments[arguments.index("--max-lora-rank") + 1] == max_rank
    assert arguments[-1] == f"{ADAPTER}={tmp_path}/adapter"


def test_an_engine_that_merges_an_adapter_gets_no_adapter_arguments(tmp_path):
    assert adapter_arguments("transformers-serve", add_adapter(tmp_path, r=8)) == ()


@pytest.mark.parametrize("kind", ["vllm", "transformers-serve"])
@pytest.mark.parametrize("config", [{}, {"r": 0}, {"r": 513}])
def test_an_adapter_with_a_missing_or_invalid_rank_is_refused(tmp_path, kind, config):
    with pytest.raises(InputError, match=r"adapter_config\.json cannot be used: r"):
        adapter_arguments(kind, add_adapter(tmp_path, **config))
