"""The keys of a service on a cluster: one that signs, mounted, and public ones in the ledger."""

from contextlib import suppress
from pathlib import Path

from agentworld.errors import EvidenceError
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.records.garbled import reading
from agentworld.signing.keys import Signer, TrustedKeys, public_pem, read_public, read_signer


class MountedKeys:
    """Keys that nobody writes beside the one that signs."""

    def __init__(self, folder: Path, told: SigningKeys) -> None:
        self._folder = folder
        self._told = told
        self._known = ""

    def signer(self) -> Signer:
        """The current signer; the ledger knows its public key before it can sign."""
        signer = read_signer(self._folder)
        key = signer.public_key
        if key.keyid != self._known:
            self._told.use(key.keyid, public_pem(key).decode("ascii"))
            self._known = key.keyid
        return signer


def told_keys(told: SigningKeys) -> TrustedKeys:
    """Every key that ever signed, as the ledger has it; what is none is trusted by nobody."""
    found: TrustedKeys = {}
    for each in told.all():
        with suppress(EvidenceError), reading(f"the ledger's key {each.key}"):
            found[each.key] = read_public(each.key, each.public.encode("ascii"), each.key)
    return found
