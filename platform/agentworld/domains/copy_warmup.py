"""Lists that repeat a few words. A new model learns to copy from them.

A pre-trained model can copy already. A model with random weights learns it in seconds on lists of
thirty tokens, and in many minutes on episodes of three hundred tokens.
"""

import random
from collections.abc import Iterator, Sequence

from agentworld.domains.words import training_words

_WORDS_IN_A_LIST = 11


def copy_warmup(separators: Sequence[str], num_texts: int, seed: int) -> Iterator[str]:
    """Texts of three to six training words, repeated in any order, with a separator after each."""
    rng = random.Random(f"drills {seed}")
    for _ in range(num_texts):
        words = rng.sample(training_words(), rng.randint(3, 6))
        pieces = (rng.choice(words) + rng.choice(separators) for _ in range(_WORDS_IN_A_LIST))
        yield "".join(pieces)
