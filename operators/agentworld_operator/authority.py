"""The authority that the webhook's certificates come from: keys, and files as a Secret holds them.

ca.crt    the bundle: the authority that signs now, then those that signed before
ca.key    its key, which no server needs
tls.crt   the serving certificate
tls.key   its key
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from agentworld_operator.policy.certificates import (
    AUTHORITY_LIFE,
    SERVING_LIFE,
    Certificate,
    CertificateSet,
    Decision,
    without_expired,
)

Files = Mapping[str, bytes]

_EARLY = timedelta(minutes=5)
"""So that a server whose clock is behind ours believes what was just made."""


class _Pair(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def read_certificates(files: Files) -> CertificateSet:
    """What can be used of a Secret's files."""
    authority, serving, bundle = _authority(files), _pair(files, "tls"), _bundle(files)
    return CertificateSet(
        serving=_to_certificate(serving.certificate, authority) if serving else None,
        authority=_to_certificate(authority.certificate, authority) if authority else None,
        authorities=tuple(_to_certificate(certificate, None) for certificate in bundle),
    )


def apply_decision(files: Files, decision: Decision, names: Sequence[str], now: datetime) -> Files:
    """The files after a decision."""
    match decision:
        case "keep":
            return files
        case "make both":
            authority = _new_authority(now)
            return _authority_files(authority, ()) | _serving_files(authority, names, now)
        case "renew authority":
            old = {
                certificate.id
                for certificate in without_expired(read_certificates(files).authorities, now)
            }
            previous = [certificate for certificate in _bundle(files) if _id(certificate) in old]
            own = {name: files[name] for name in ("tls.crt", "tls.key") if name in files}
            return _authority_files(_new_authority(now), previous) | own
        case "renew serving":
            signing = _authority(files)
            assert signing
            own = {name: files[name] for name in ("ca.crt", "ca.key")}
            return own | _serving_files(signing, names, now)


def _new_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("agentworld webhook authority")
    built = (
        _start_builder(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return _Pair(built.sign(key, SHA256()), key)


def _serving_files(authority: _Pair, names: Sequence[str], now: datetime) -> dict[str, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = authority.key.public_key()
    alternative_names = x509.SubjectAlternativeName([_general(name) for name in names])
    built = (
        _start_builder(
            _name("agentworld webhook"), authority.certificate.subject, key, now, SERVING_LIFE
        )
        .add_extension(alternative_names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
    serving = built.sign(authority.key, SHA256())
    return {"tls.crt": serving.public_bytes(Encoding.PEM), "tls.key": _encode_key(key)}


def _start_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _authority_files(authority: _Pair, before: Sequence[x509.Certificate]) -> dict[str, bytes]:
    bundle = [authority.certificate, *before]
    bundle_pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in bundle)
    return {"ca.crt": bundle_pem, "ca.key": _encode_key(authority.key)}


def _authority(files: Files) -> _Pair | None:
    return _pair(files, "ca")


def _pair(files: Files, name: str) -> _Pair | None:
    """The first certificate of a file with its key; null where one of them is no such thing."""
    try:
        certificate = x509.load_pem_x509_certificates(files[f"{name}.crt"])[0]
        key = load_pem_private_key(files[f"{name}.key"], password=None)
    except (KeyError, ValueError, TypeError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return _Pair(certificate, key) if certificate.public_key() == key.public_key() else None


def _bundle(files: Files) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(files["ca.crt"])
    except (KeyError, ValueError):
        return []


def _to_certificate(certificate: x509.Certificate, authority: _Pair | None) -> Certificate:
    """`authority` is what may have signed it."""
    signed = authority is not None and _has_signed(authority.certificate, certificate)
    return Certificate(
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        id=_id(certificate),
        signed_by=_id(authority.certificate) if authority and signed else b"",
        names=_names(certificate),
    )


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _id(certificate: x509.Certificate) -> bytes:
    return x509.SubjectKeyIdentifier.from_public_key(certificate.public_key()).digest


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        alternative_names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in alternative_names)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common_name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
