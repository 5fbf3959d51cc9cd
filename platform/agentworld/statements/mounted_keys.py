"""The keys of a service on a cluster: a mounted signing key, and public keys in the ledger."""

from contextlib import suppress
from pathlib import Path

from agentworld.errors import EvidenceError
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.records.garbled import reading
from agentworld.signing.keys import Signer, TrustedKeys, public_pem, read_public, read_signer


class MountedKeys:
    """A signing key in a read-only folder; its public key is published in the ledger."""

    def __init__(self, folder: Path, ledger_keys: SigningKeys) -> None:
        self._folder = folder
        self._ledger_keys = ledger_keys
        self._keyid = ""

    def signer(self) -> Signer:
        """The current signer; its public key is in the ledger before it can sign."""
        signer = read_signer(self._folder)
        key = signer.public_key
        if key.keyid != self._keyid:
            self._ledger_keys.use(key.keyid, public_pem(key).decode("ascii"))
            self._keyid = key.keyid
        return signer


def read_trusted_keys(ledger_keys: SigningKeys) -> TrustedKeys:
    """All keys in the ledger that ever signed; invalid ones are not trusted."""
    keys: TrustedKeys = {}
    for ledger_key in ledger_keys.all():
        with suppress(EvidenceError), reading(f"the ledger's key {ledger_key.key}"):
            keys[ledger_key.key] = read_public(
                ledger_key.key, ledger_key.public.encode("ascii"), ledger_key.key
            )
    return keys
