"""What is known of GPUs: their memory, and how fast they multiply matrices of bfloat16."""

from typing import NamedTuple

GIB = 1 << 30


class Card(NamedTuple):
    """One kind of GPU."""

    cuda_name: str
    """What CUDA calls it."""
    gib: float
    """Memory, as errors of torch name it for such a card; only an H200 was ours."""
    flops: float
    """Of bfloat16, dense, in a second, by NVIDIA's data sheet."""


CARDS = {
    "A100": Card("NVIDIA A100-SXM4-80GB", 79.1, 312e12),
    "H100": Card("NVIDIA H100 80GB HBM3", 79.1, 989e12),
    "H200": Card("NVIDIA H200", 139.8, 989e12),
    "B200": Card("NVIDIA B200", 178.3, 2_250e12),
}
"""By the name that people use."""


def peak_flops(cuda_name: str) -> float | None:
    """Of a card by CUDA's name; null for one that is not known."""
    return next((card.flops for card in CARDS.values() if card.cuda_name == cuda_name), None)
