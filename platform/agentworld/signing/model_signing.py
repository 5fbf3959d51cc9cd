"""An artifact's manifest in the OpenSSF form, which the program `model_signing` signs and verifies.

Its subject digest covers the files' digests in the order of their names, but not the names; these
are in the list of resources, which the signature covers. That program signs with a key on a NIST
curve or through Sigstore, so use it to sign this form and to check such a signature.
"""

from pathlib import PurePosixPath

from pydantic import JsonValue

from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import BESIDE, ArtifactManifest
from agentworld.signing.envelope import Statement, Subject

PREDICATE_TYPE = "https://model_signing/signature/v1.0"


def model_statement(artifact: ArtifactManifest, name: str) -> Statement:
    """The unsigned statement; `name` is for people and in no digest."""
    digests = {path: artifact.files[path] for path in sorted(artifact.files, key=PurePosixPath)}
    values = {path: digest.removeprefix("sha256:") for path, digest in digests.items()}
    resources: list[JsonValue] = [
        {"name": path, "algorithm": "sha256", "digest": value} for path, value in values.items()
    ]
    whole = digest_bytes(bytes.fromhex("".join(values.values())))
    return Statement(
        subject=(Subject.of(name, whole),),
        predicate_type=PREDICATE_TYPE,
        predicate={"serialization": _serialization(), "resources": resources},
    )


def _serialization() -> dict[str, JsonValue]:
    """The rules for listing the resources, which the program reads to list them again."""
    return {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": False,
        "ignore_paths": list(BESIDE),
    }
