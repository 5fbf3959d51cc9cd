from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld_operator.policy.certificates import (
    Certificate,
    CertificateSet,
    decide,
    without_expired,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAMES = ("webhook.agentworld.svc", "webhook")
DAY = timedelta(days=1)


def certificate(age=0, life=90, id_=b"serving", signed_by=b"authority", names=NAMES):
    begins = NOW - age * DAY
    return Certificate(begins, begins + life * DAY, id_, signed_by, names)


def authority(age=0, id_=b"authority"):
    return certificate(age, 3650, id_, id_, ())


def held(serving=certificate(), own=authority()):  # noqa: B008 - frozen
    return CertificateSet(serving, own, (own,) if own else ())


@pytest.mark.parametrize(
    ("there", "decision"),
    [
        (held(), "keep"),
        (held(certificate(59)), "keep"),
        (held(certificate(60)), "renew serving"),
        (held(certificate(91)), "renew serving"),
        (held(certificate(-1)), "renew serving"),  # a clock was wrong
        (held(certificate(names=("webhook",))), "renew serving"),
        (held(certificate(names=NAMES[::-1])), "keep"),
        (held(certificate(signed_by=b"before")), "renew serving"),
        (held(serving=None), "renew serving"),
        (held(own=authority(2433)), "keep"),
        (held(own=authority(2434)), "renew authority"),
        (held(certificate(60), authority(2434)), "renew authority"),
        (held(own=authority(3650)), "make both"),
        (held(own=authority(-1)), "make both"),
        (held(own=None), "make both"),
        (CertificateSet(), "make both"),
    ],
)
def test_what_is_there_is_kept_or_made_anew(there, decision):
    assert decide(there, NAMES, NOW) == decision


def test_an_authority_stays_believed_until_it_ends():
    old, ended = authority(3000, b"old"), authority(3650, b"ended")
    assert without_expired((old, ended), NOW) == (old,)


@given(st.integers(0, 20_000))
def test_whatever_the_day_a_used_serving_certificate_has_a_third_of_its_life_left(age):
    if decide(held(certificate(age)), NAMES, NOW) == "keep":
        assert certificate(age).ends - NOW >= 30 * DAY
