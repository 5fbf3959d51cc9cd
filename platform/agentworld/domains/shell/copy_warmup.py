"""The copy warm-up of the shell: words between the separators that a shell's output has."""

from functools import partial

from agentworld.domains import copy_warmup as warmup

copy_warmup = partial(warmup.copy_warmup, (" ", " ", " ", "\n", ".txt\n", ".txt: ", "/", " > "))
"""From a number of texts and a seed, the texts."""
