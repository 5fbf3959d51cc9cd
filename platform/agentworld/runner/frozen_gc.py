"""Importing what is heavy: torch, transformers and TRL are a million objects.

A step imports them when it has something to do, so that one that is used again does not
wait for them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_gc() -> Iterator[None]:
    """What is made in the block stays to the end of the process; no collection looks at it.

    A third of the import of torch and transformers is collections that find nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
