"""Imports heavy packages: torch, transformers and TRL create a million objects.

A step imports them only if it has work to do, so that a reused step does not wait for them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Objects that the block creates stay until the end of the process, and are never collected.

    Otherwise a third of the import of torch and transformers is collections that find nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
