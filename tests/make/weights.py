"""Small files of weights, as safetensors writes them."""

import json
from math import prod

_VALUE_BYTES = 4


def weights(words: str = "weights", /, **shapes: list[int]) -> bytes:
    """Float tensors of these shapes, all of them zero; other words make another file."""
    told: dict[str, object] = {"__metadata__": {"words": words}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + _VALUE_BYTES * prod(shape)
        told[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(told).encode()
    return len(header).to_bytes(8, "little") + header + bytes(end)
