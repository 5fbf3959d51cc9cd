"""Small files of weights, as safetensors writes them."""

import json
from math import prod

_VALUE_BYTES = 4


def weights(words: str = "weights", /, **shapes: list[int]) -> bytes:
    """Float tensors of these shapes, all zero; other metadata gives another file."""
    header_fields: dict[str, object] = {"__metadata__": {"words": words}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + _VALUE_BYTES * prod(shape)
        header_fields[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(header_fields).encode()
    return len(header).to_bytes(8, "little") + header + bytes(end)
