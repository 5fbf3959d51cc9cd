"""What a new model of a shell copies at first: words between what stands between files' names."""

from functools import partial

from agentworld.domains import copy_warmup as warmup

copy_warmup = partial(warmup.copy_warmup, (" ", " ", " ", "\n", ".txt\n", ".txt: ", "/", " > "))
"""So many texts of a seed."""
