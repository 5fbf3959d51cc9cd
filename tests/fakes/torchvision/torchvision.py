"""The names of torchvision that vLLM's classes of Qwen3.5 import but do not call for texts.

The registry's torchvision cannot be loaded with a torch for CPUs.
"""

import sys
from enum import Enum
from types import ModuleType

__path__: list[str] = []
__version__ = "0.28.0"


class InterpolationMode(Enum):
    """How an image is resized."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_TRANSFORMS = ("transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional")
for _name in ("io", *_TRANSFORMS):
    _module = ModuleType(f"{__name__}.{_name}")
    vars(_module).update(
        __path__=[],
        InterpolationMode=InterpolationMode,
        **dict.fromkeys(("ImageReadMode", "decode_image", "pil_to_tensor")),
    )
    _parent, _, _child = _module.__name__.rpartition(".")
    sys.modules[_module.__name__] = _module
    setattr(sys.modules[_parent], _child, _module)
