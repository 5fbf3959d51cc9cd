"""What becomes of the webhook's certificates: kept, or one of them made anew.

Everybody trusts a new authority before it signs anything: the round that makes it
leaves the serving certificate, and the next one, after the bundle was published, makes that anew.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

Decision = Literal["keep", "renew serving", "renew authority", "make both"]

SERVING_LIFE = timedelta(days=90)
AUTHORITY_LIFE = timedelta(days=3650)


class Certificate(NamedTuple):
    """One, as far as it matters here."""

    begins: datetime
    ends: datetime
    id: bytes = b""
    """Of its key."""
    signed_by: bytes = b""
    """The id of the key that signed it."""
    names: tuple[str, ...] = ()
    """Under which a server is asked."""


class CertificateSet(NamedTuple):
    """What a Secret holds and what can be used: a certificate without its key cannot."""

    serving: Certificate | None = None
    authority: Certificate | None = None
    """What signs now."""
    authorities: tuple[Certificate, ...] = ()
    """All authorities of the bundle."""


def decide(certificates: CertificateSet, names: Sequence[str], now: datetime) -> Decision:
    """What to do before this is looked at again."""
    authority, serving = certificates.authority, certificates.serving
    if authority is None or not _is_valid(authority, now):
        return "make both"
    if _is_due(authority, now):
        return "renew authority"
    if serving is None or serving.signed_by != authority.id or _is_due(serving, now):
        return "renew serving"
    return "keep" if set(serving.names) == set(names) else "renew serving"


def without_expired(authorities: Sequence[Certificate], now: datetime) -> tuple[Certificate, ...]:
    """The authorities that stay in the bundle beside a new one."""
    return tuple(authority for authority in authorities if now < authority.ends)


def _is_valid(certificate: Certificate, now: datetime) -> bool:
    return certificate.begins <= now < certificate.ends


def _is_due(certificate: Certificate, now: datetime) -> bool:
    """After two thirds of its life, or where a clock was wrong when it was made."""
    lifetime = certificate.ends - certificate.begins
    return not certificate.begins <= now < certificate.begins + lifetime * 2 / 3
