import json
import pickle

import pytest

from agentworld.errors import InputError
from agentworld.storage.model_folder import check_safe
from agentworld.storage.weights import num_parameters, read_tensors
from make.weights import weights


def test_parameters_are_counted_over_all_files(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(weights(embedding=[10, 4], scale=[]))
    (tmp_path / "b.safetensors").write_bytes(weights(layer=[4, 4]))
    (tmp_path / "config.json").write_text("{}")
    assert num_parameters(tmp_path) == 40 + 1 + 16


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no safetensors weights"):
        num_parameters(tmp_path)


def file_bytes(header: bytes, num_bytes: int = 0) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(num_bytes)


def file_with(num_bytes: int, **tensors: object) -> bytes:
    return file_bytes(json.dumps(tensors).encode(), num_bytes)


def tensor(begin: int, end: int, shape: list[int], dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GARBLED = {
    "empty": b"",
    "a pickle": pickle.dumps({"w": [1.0]}),
    "a header that is too long": b"\xff" * 8 + b"{}",
    "a header that is cut off": (100).to_bytes(8, "little") + b"{",
    "a header that is nested 200,000 deep": file_bytes(b'{"a":' * 200_000),
    "a list": file_bytes(b"[]"),
    "no JSON": file_bytes(b"{"),
    "no UTF-8": file_bytes(b'{"\xff":{}}'),
    "no shape": file_bytes(b'{"a": {}}'),
    "a shape below zero": file_with(4, w=tensor(0, 4, [-1])),
    "a shape of no integer": file_with(4, w=tensor(0, 4, [1.0])),
    "more dimensions than any tensor has": file_with(4, w=tensor(0, 4, [1] * 65)),
    "a number of ten thousand digits": file_bytes(b'{"w": %s}' % (b"9" * 10_000)),
    "an unknown type": file_with(4, w=tensor(0, 4, [1], "F33")),
    "more bytes than its shape": file_with(8, w=tensor(0, 8, [1])),
    "fewer bytes than its shape": file_with(4, w=tensor(0, 4, [2])),
    "an end before its begin": file_with(4, w=tensor(4, 0, [1])),
    "tensors that overlap": file_with(6, a=tensor(0, 4, [1]), b=tensor(2, 6, [1])),
    "a gap between tensors": file_with(12, a=tensor(0, 4, [1]), b=tensor(8, 12, [1])),
    "a file that is cut off": weights(w=[4])[:-1],
    "a file that goes on": weights(w=[4]) + b"x",
    "one name twice": file_bytes(
        b'{"w": %s, "w": %s}' % ((json.dumps(tensor(0, 4, [1])).encode(),) * 2), 4
    ),
}


@pytest.mark.parametrize("data", GARBLED.values(), ids=GARBLED)
def test_an_invalid_safetensors_file_is_refused_by_its_name(tmp_path, data):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    for check in (lambda: read_tensors(path), lambda: check_safe(tmp_path)):
        with pytest.raises(
            InputError, match=r"model\.safetensors is not a safetensors file \(.+\)"
        ):
            check()


@pytest.mark.parametrize("name", ["model.SAFETENSORS", "adapter/adapter_model.safetensors"])
def test_safetensors_files_are_checked_in_subfolders_and_in_any_letter_case(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"garbage")
    with pytest.raises(InputError, match="is not a safetensors file"):
        check_safe(tmp_path)


@pytest.mark.compute
def test_files_written_by_safetensors_are_read_with_the_same_shapes(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    kinds = [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex64]
    tensors = {f"{kind.__name__}": np.zeros((3, 5), kind) for kind in kinds}
    tensors |= {"empty": np.zeros((0, 7)), "scalar": np.zeros(())}
    save_file(tensors, tmp_path / "model.safetensors")
    loaded = read_tensors(tmp_path / "model.safetensors")
    assert {name: array.shape for name, array in loaded.items()} == {
        name: array.shape for name, array in tensors.items()
    }
    assert num_parameters(tmp_path) == sum(array.size for array in tensors.values())


@pytest.mark.compute
def test_low_precision_torch_dtypes_are_accepted(tmp_path):
    import torch
    from safetensors.torch import save_file

    kinds = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)
    save_file({str(kind): torch.zeros(6, dtype=kind) for kind in kinds}, tmp_path / "a.safetensors")
    assert num_parameters(tmp_path) == 6 * len(kinds)
