"""Our statements, checked with the program `model_signing` of the OpenSSF."""

import base64
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from in_toto_attestation.v1 import statement as in_toto
from model_signing import hashing, signing, verifying
from model_signing._signing.sign_ec_key import Signer
from model_signing._signing.signing import Payload

from agentworld.records.checkpoint import ArtifactManifest
from agentworld.signing.model_signing import model_statement
from make.examples import examples

NAMES = st.sampled_from(
    ["a", "a.txt", "a/b", "a b", "a-b/c", "B", "b/a/c", "é", ".x", ".gitignore", ".git/b", "d/.git"]
)
EXTRA_FILES = (
    ".cache/huggingface/download/a.metadata",
    ".git/config",
    ".gitattributes",
    ".github/a.yaml",
    ".gitignore",
    "model.sig",
)


@pytest.fixture
def model(tmp_path):
    return write_files(
        tmp_path / "model",
        {"model.safetensors": b"weights", "config.json": b"{}", "config/a.json": b"[]"},
    )


@pytest.fixture(params=[ec.SECP256R1, ec.SECP384R1, ec.SECP521R1], ids=lambda curve: curve.name)
def keys(request, tmp_path):
    """The files of a private and a public key, as the program reads them."""
    private = ec.generate_private_key(request.param())
    paths = tmp_path / "key.pem", tmp_path / "key.pub"
    paths[0].write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key()
    paths[1].write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return paths


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def files_in(statement: object) -> tuple[object, object]:
    """The files in a statement's JSON."""
    return statement["subject"], statement["predicate"]["resources"]


def our_files(folder: Path) -> tuple[object, object]:
    statement = model_statement(ArtifactManifest.of(folder), folder.name)
    return files_in(json.loads(statement.canonical))


def sign_model(folder: Path, private: Path) -> Path:
    """The path of our statement, signed by the program's own signer and stored beside the model."""
    statement = model_statement(ArtifactManifest.of(folder), folder.name)
    parsed = json_format.Parse(statement.canonical, in_toto.spb.Statement())
    path = folder.parent / "model.sig"
    Signer(private).sign(SimpleNamespace(statement=SimpleNamespace(pb=parsed))).write(path)
    return path


def verify(folder: Path, signature: Path, public: Path) -> None:
    verifying.Config().use_elliptic_key_verifier(public_key=public).verify(folder, signature)


@examples(30)
@given(st.dictionaries(NAMES, st.binary(max_size=3), min_size=1, max_size=8))
def test_subject_and_resources_match_the_payload_of_model_signing(files):
    files = {
        name: content
        for name, content in files.items()
        if not any(other.startswith(f"{name}/") for other in files)
    }
    with tempfile.TemporaryDirectory() as folder:
        model = write_files(Path(folder) / "model", files)
        model.mkdir(exist_ok=True)
        statement = Payload(hashing.hash(model)).statement.pb
        assert our_files(model) == files_in(json_format.MessageToDict(statement))


def test_a_signature_by_model_signing_covers_the_same_resources(model, keys):
    private, _ = keys
    path = model.parent / "model.sig"
    signing.Config().use_elliptic_key_signer(private_key=private).sign(model, path)
    payload = json.loads(path.read_bytes())["dsseEnvelope"]["payload"]
    assert files_in(json.loads(base64.b64decode(payload))) == our_files(model)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: (model / "config.json").write_bytes(b"[]"),
        lambda model: (model / "config.json").unlink(),
        lambda model: (model / "more.json").write_bytes(b"{}"),
        lambda model: (model / "config.json").rename(model / "config.jsom"),
    ],
    ids=["changed", "missing", "more", "renamed"],
)
def test_model_signing_rejects_a_changed_model_with_an_agentworld_statement(model, keys, change):
    private, public = keys
    signature = sign_model(model, private)
    change(model)
    with pytest.raises(ValueError, match="Signature mismatch"):
        verify(model, signature, public)


def test_model_signing_and_the_manifest_ignore_the_same_extra_files(model, keys):
    private, public = keys
    signature = sign_model(model, private)
    before = ArtifactManifest.of(model).digest
    write_files(model, dict.fromkeys(EXTRA_FILES, b"anything"))
    verify(model, signature, public)
    assert ArtifactManifest.of(model).digest == before


def test_renaming_a_file_changes_the_artifact_digest_but_not_the_subject_digest(model):
    before, (subject, _) = ArtifactManifest.of(model).digest, our_files(model)
    (model / "config.json").rename(model / "config.jsom")
    assert our_files(model)[0] == subject
    assert ArtifactManifest.of(model).digest != before
