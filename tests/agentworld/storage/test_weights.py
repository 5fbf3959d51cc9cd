import json

import pytest

from agentworld.errors import InputError
from agentworld.storage.weights import num_parameters


def weights(path, **shapes):
    """A file whose tensors are of these shapes, and whose values nobody reads."""
    header = {name: {"dtype": "F32", "shape": shape} for name, shape in shapes.items()}
    told = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(len(told).to_bytes(8, "little") + told)


def test_parameters_are_counted_over_all_files(tmp_path):
    weights(tmp_path / "a.safetensors", embedding=[10, 4], scale=[])
    weights(tmp_path / "b.safetensors", layer=[4, 4])
    (tmp_path / "config.json").write_text("{}")
    assert num_parameters(tmp_path) == 40 + 1 + 16


def test_a_folder_without_weights_is_no_model(tmp_path):
    with pytest.raises(InputError, match="has no safetensors weights"):
        num_parameters(tmp_path)


GARBLED = {
    "empty": b"",
    "too long": b"\xff" * 8 + b"{}",
    "cut off": (100).to_bytes(8, "little") + b"{}"[:1],
    "no object": (2).to_bytes(8, "little") + b"[]",
    "no shapes": (9).to_bytes(8, "little") + b'{"a": {}}',
}


@pytest.mark.parametrize("data", GARBLED.values(), ids=GARBLED)
def test_garbled_weights_are_told_by_their_file(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(InputError, match=r"model\.safetensors is no safetensors file"):
        num_parameters(tmp_path)


@pytest.mark.slow
def test_what_safetensors_writes_is_counted_as_it_counts(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    tensors = {"a": np.zeros((3, 5)), "b": np.zeros(7)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert num_parameters(tmp_path) == sum(each.size for each in tensors.values())
