"""Known GPUs: memory, and peak FLOP/s of bfloat16 matrix multiplication."""

from typing import NamedTuple

GIB = 1 << 30


class Card(NamedTuple):
    """One kind of GPU."""

    cuda_name: str
    """CUDA's name."""
    gib: float
    """Memory in GiB, as torch reports it for such a card; only an H200 was measured."""
    flops: float
    """Dense bfloat16 FLOP/s, by NVIDIA's data sheet."""


CARDS = {
    "A100": Card("NVIDIA A100-SXM4-80GB", 79.1, 312e12),
    "H100": Card("NVIDIA H100 80GB HBM3", 79.1, 989e12),
    "H200": Card("NVIDIA H200", 139.8, 989e12),
    "B200": Card("NVIDIA B200", 178.3, 2_250e12),
}
"""By the common name."""


def peak_flops(cuda_name: str) -> float | None:
    """Peak FLOP/s of a card by CUDA's name; null for an unknown card."""
    return next((card.flops for card in CARDS.values() if card.cuda_name == cuda_name), None)
