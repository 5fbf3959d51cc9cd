"""The contents of the webhook's Secret, signed by the tests' own authority."""

from pathlib import Path

import trustme

from agentworld.engine.process import LOOPBACK

FILES = ("tls.crt", "tls.key")


def new_files(authority: trustme.CA) -> dict[str, bytes]:
    """A new serving certificate for a loopback address, with its key and its authority's
    certificate.
    """
    certificate = authority.issue_cert(LOOPBACK)
    (chain,) = certificate.cert_chain_pems
    return {
        "ca.crt": authority.cert_pem.bytes(),
        "tls.crt": chain.bytes(),
        "tls.key": certificate.private_key_pem.bytes(),
    }


def mount(files: dict[str, bytes], folder: Path) -> None:
    """Mounts files atomically, as a kubelet does."""
    for name in FILES:
        (folder / "draft").write_bytes(files[name])
        (folder / "draft").rename(folder / name)
