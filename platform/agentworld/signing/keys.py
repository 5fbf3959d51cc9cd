"""The keys that sign: a folder with the current signer and every public key that ever signed.

A cluster mounts the signer alone, read-only; the public keys are then told by the ledger.

    signer.pem              the private key (Ed25519, PKCS8), for its owner alone
    trusted/<key id>.pem    public keys; a record verifies for as long as its key is here

A key's id is the sha256 of its public key in DER form. Whoever takes a public key out of
`trusted` takes back all that it signed.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.signer import CryptoSigner, SSlibKey

from agentworld.errors import InputError, NotFound
from agentworld.records.file import draft, input_errors, read_regular
from agentworld.storage.private import read_private
from agentworld.storage.working_copy import copy_of

Signer = CryptoSigner
TrustedKeys = dict[str, SSlibKey]
"""Public keys by their ids."""

SIGNER = "signer.pem"
TRUSTED = "trusted"

SIMULATOR_KEYS = "simulator"
"""The folder with the keys that sign logs, in a folder of all keys."""
STEP_KEYS = "steps"
"""The folder with the keys of the steps that write weights."""
KEY_VARIABLES = {SIMULATOR_KEYS: "AGENTWORLD_SIMULATOR_KEY", STEP_KEYS: "AGENTWORLD_STEP_KEY"}
"""The environment variables with the keys, for a pod without a folder of keys."""


def load_signer(folder: Path) -> Signer:
    """The current signer; its public key becomes trusted before it can sign."""
    signer = read_signer(folder)
    _trust(folder, signer.public_key)
    return signer


def read_signer(folder: Path) -> Signer:
    """The current signer, for callers that publish its public key elsewhere; raises NotFound."""
    private = _read_private(folder / SIGNER)
    return Signer(private, _to_sslib_key(private.public_key()))


def ensure_signer(folder: Path) -> Signer:
    """The current signer, which is created if it is missing; of several concurrent creators, one
    wins.

    Raises InputError in a working copy of a bucket, where a new key would be lost.
    """
    if not (folder / SIGNER).exists():
        if copy_of(folder.absolute()):
            raise InputError(
                f"a bucket cannot hold a private key; set {KEY_VARIABLES[folder.name]} to a"
                " signer's PEM, or AGENTWORLD_KEYS to a folder of keys"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link is atomic, and never replaces another signer.
        with (
            draft(folder / SIGNER, new_signer(), 0o600) as file,
            contextlib.suppress(FileExistsError),
        ):
            os.link(file, folder / SIGNER)
    return load_signer(folder)


def put_signer(folder: Path, pem: str) -> None:
    """Makes a private key the current signer of a folder; raises InputError if it is invalid."""
    data, path = pem.encode(), folder / SIGNER
    with contextlib.suppress(OSError):
        if read_regular(path) == data:
            return
    _private_key(data, KEY_VARIABLES[folder.name])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with draft(path, data, 0o600) as file:
        file.replace(path)
    load_signer(folder)


def rotate(folder: Path) -> Signer:
    """Replaces the current signer, whose public key stays trusted.

    Raises NotFound if there is none; an invalid key is replaced.
    """
    try:
        load_signer(folder)
    except NotFound:
        raise
    except InputError:
        pass
    with draft(folder / SIGNER, new_signer(), 0o600) as file:
        file.replace(folder / SIGNER)
    return load_signer(folder)


def current_key(folder: Path) -> str | None:
    """The id of the current signer's key; null if a folder has only public keys."""
    path = folder / SIGNER
    return _key_id(_read_private(path).public_key()) if path.exists() else None


def load_trusted(folder: Path) -> TrustedKeys:
    """Every public key that is trusted."""
    paths = sorted((folder / TRUSTED).glob("*.pem"))
    if not paths:
        raise NotFound(
            f"{folder / TRUSTED} holds no public key; name the folder of the keys as"
            " AGENTWORLD_KEYS, or the store that has them"
        )
    return {path.stem: _read_public(path) for path in paths}


def _read_private(path: Path) -> Ed25519PrivateKey:
    try:
        data = read_private(path)
    except FileNotFoundError as error:
        raise NotFound(f"there is no signer {path}; make one, or name its folder") from error
    return _private_key(data, path)


def _private_key(pem: bytes, source: object) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"{source} is not a private key ({error}); restore or rotate it"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{source} is not an Ed25519 key; restore or rotate it")
    return key


def _read_public(path: Path) -> SSlibKey:
    with input_errors(path):
        pem = read_regular(path)
    return read_public(path.stem, pem, path)


def read_public(name: str, pem: bytes, source: object) -> SSlibKey:
    """The public key of an id; raises InputError if it is invalid or has another id."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{source} is not a public key ({error}); restore or remove it") from error
    if not isinstance(key, Ed25519PublicKey) or _key_id(key) != name:
        raise InputError(f"{source} is not the Ed25519 key of its name; restore or remove it")
    return _to_sslib_key(key)


def public_pem(key: SSlibKey) -> bytes:
    """The PEM form that `read_public` reads."""
    raw = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.keyval["public"]))
    return raw.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _trust(folder: Path, public: SSlibKey) -> None:
    path = folder / TRUSTED / f"{public.keyid}.pem"
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    with draft(path, public_pem(public), 0o600) as file:
        file.chmod(0o644)
        file.replace(path)


def new_signer() -> bytes:
    """A new private key as PEM."""
    private = Ed25519PrivateKey.generate()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _to_sslib_key(public: Ed25519PublicKey) -> SSlibKey:
    return SSlibKey.from_crypto(public, keyid=_key_id(public))


def _key_id(public: Ed25519PublicKey) -> str:
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()
