"""Decides whether a value after a word such as `password` is a secret.

A plain word, a path, a readable identifier, a UUID and a digest are not secrets.
"""

import re
import string

from detect_secrets.filters.heuristic import (
    is_indirect_reference,
    is_potential_uuid,
    is_sequential_string,
    is_templated_secret,
)

_DIGEST = re.compile(r"(?i)(?:sha\d+|md5|blake2b?)[:-]|[0-9a-f]{7,128}\Z")
_READABLE = re.compile(r"(?:[A-Za-z]+|\d+)(?:[-_./:@](?:[A-Za-z]+|\d+))+")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PATH = re.compile(r"[.~]{0,2}(?:/[\w.~-]*){2,}")
_FEWEST_CHARACTERS = 8
FEWEST_DIFFERENT = 5
"""Characters: a value with fewer is a filler such as `xxxxxxxx`."""


def is_mixed(value: str) -> bool:
    """Whether it has letters and digits, or three of lower case, upper case, digits and signs."""
    sorts = (string.ascii_lowercase, string.ascii_uppercase, string.digits, string.punctuation)
    lower, upper, digits, signs = (any(map(sort.__contains__, value)) for sort in sorts)
    return (digits and (lower or upper)) or lower + upper + digits + signs > 2


def is_password(value: str) -> bool:
    """Whether a value after a word such as `password` or `api_key` is one."""
    return (
        len(value) >= _FEWEST_CHARACTERS
        and len(set(value)) >= FEWEST_DIFFERENT
        and is_mixed(value)
        and "://" not in value
        and not is_templated_secret(value)
        and not is_sequential_string(value)
        and not is_potential_uuid(value)
        and not is_indirect_reference(f"x={value}")
        and not _REFERENCE.fullmatch(value)
        and not _DATE.match(value)
        and not _PATH.fullmatch(value)
        and not re.match(r"(?i)(?:sha\d+|md5)[:-]", value)
    )


def is_token(value: str) -> bool:
    """The same for a word such as `token`, which also has other meanings."""
    return (
        is_password(value)
        and len(value) >= 2 * _FEWEST_CHARACTERS
        and not _DIGEST.match(value)
        and not _READABLE.fullmatch(value)
        and " " not in value
    )
