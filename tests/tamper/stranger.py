"""The attacker's own key, which nobody trusts."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from agentworld.evidence.keys import Signer, ensure_signer


@cache
def stranger() -> Signer:
    """The same each time."""
    with TemporaryDirectory() as folder:
        return ensure_signer(Path(folder) / "keys")
