"""Prepares the process from which tests fork; it imports this last.

A fork shares the memory of that process, so no fork reads all source files and certificates again,
and none copies what its garbage collector would scan. Python ignores this module where `tests` is
not in PYTHONPATH; the forks are slower then.
"""

import gc
from importlib import import_module

from agentworld.domains.base import domain_names
from agentworld.engine.http_client import trusted_authorities
from agentworld.runner.code import code_digest
from agentworld.steps.table import STEPS

_IMPORTED_BY_THE_FIRST_REQUEST = ("anyio._backends._asyncio", "httpcore")

for name in _IMPORTED_BY_THE_FIRST_REQUEST:
    import_module(name)
for step in STEPS:
    code_digest(step, tuple(domain_names()))
trusted_authorities()
gc.collect()
gc.freeze()
