"""Addresses of databases and stores may hold a password; people and logs see them without."""

import re

_PASSWORD = re.compile(r"(^|[\s/'\"=(])([^\s:/@]*):(?!//)\S*@")
_SECRET = "password|passwd|secret|token|key|signature|credential"
_PARAMETER = re.compile(rf"(?i)([?&;](?:[\w.-]*(?:{_SECRET})[\w.-]*|sig)=)[^&;\s]*")


def redact(text: str) -> str:
    """An address, or words about one, with its secrets as `***`; rather too many than too few."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1\2:***@", text))
