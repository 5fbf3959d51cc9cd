"""Compiles one small function, so that a compiler that does not work is found at set-up.

What torch finds out meanwhile (the processor's vector instructions) and compiles once (its own
headers) it keeps for the first training: a quarter of a minute.
"""

import torch

compiled = torch.compile(lambda x: x + 1, dynamic=True)
if not torch.equal(compiled(torch.ones(64)), torch.full((64,), 2.0)):
    raise SystemExit("torch.compile made a function that adds wrongly; is the C++ compiler whole?")
