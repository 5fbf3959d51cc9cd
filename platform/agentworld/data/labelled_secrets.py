"""Secrets that are recognised only by the word before them: `DB_PASSWORD=...`, `"api_key": "..."`.

detect-secrets' own plugin for these accepts only quoted values, and only the first in a line.
"""

import re
from collections.abc import Callable, Iterator

from agentworld.data.secret_values import is_password, is_token

_LABELS: dict[str, tuple[str, Callable[[str], bool]]] = {
    **dict.fromkeys(
        ("password", "passwd", "passphrase", "pwd", "_pass"), ("password", is_password)
    ),
    "secret": ("secret", is_password),
    **dict.fromkeys(
        (
            *("api_key", "api-key", "apikey", "access_key", "accesskey", "account_key"),
            *("accountkey", "private_key", "auth_key", "encryption_key", "signing_key"),
        ),
        ("api-key", is_password),
    ),
    **dict.fromkeys(("token", "credential", "sessionid", "session_id"), ("token", is_token)),
}
LABELS = tuple(_LABELS)
"""In lower case, as `find_labelled` looks for them."""

_REST_OF_NAME = r"(?P<rest>(?:[A-Z_.-][\w.-]{0,32})?s?\d{0,3})"
_SIGN = r"[\"'`\]\\]{0,5}\s{0,3}(?::=|=>|={1,3}|:)\s{0,3}"
_SCHEME = r"(?:(?i:bearer|basic|token)\s+)?"
_QUOTED = r"\\{0,3}[\"'`](?!\[REDACTED:)(?P<quoted>[^\n\"'`\\]{8,65536}+)"
_PLAIN = r"(?P<plain>[^\s\"'`,;<>(){}\[\]$|&\\]{8,65536}+)(?![(\[{])"
_VALUE = re.compile(f"{_REST_OF_NAME}{_SIGN}(?:{_SCHEME}{_PLAIN}|{_QUOTED})")
HINT = (
    f"(?:{'|'.join(LABELS)})"
    r"[\w.-]*[\"'`\]\\]{0,5}\s{0,3}(?::=|=>|={1,3}|:)\s{0,3}"
    r"(?:(?:bearer|basic|token)\s+)?\\{0,3}(?:[\"'`][^\n\"'`\\]{8}|[^\s\"'`,;<>(){}\[\]$|&\\]{8})"
)
"""A pattern in RE2's syntax that every text with such a secret matches, in any case."""
_OTHER_THINGS = re.compile(
    r"(?i)izer|hash|sha|digest|md5|checksum|print|expir|_at$|_?ids?$|len|count|limit|polic|type|name"
    r"|version|path|file|ur[il]$|arn$|ref|max|min|num|hint|field|label|format|usage|env"
)
_OTHER_TOKENS = re.compile(
    r"(?i)(?:page|next|sync|continuation|csrf|pad|[be]os|unk|stop|max|min|num|cache)[\w-]{0,3}\Z"
)


def find_labelled(text: str, folded: str) -> Iterator[tuple[int, str, str]]:
    """Start, value and kind; `folded` is the text in lower case, of equal length."""
    for label, (kind, is_secret) in _LABELS.items():
        position = folded.find(label)
        while position >= 0:
            match = _VALUE.match(text, position + len(label))
            if match and not _OTHER_THINGS.search(match["rest"]):
                group = "quoted" if match["quoted"] else "plain"
                is_other = kind == "token" and _OTHER_TOKENS.search(
                    text, max(0, position - 16), position
                )
                if not is_other and is_secret(match[group]):
                    yield match.start(group), match[group], kind
            position = folded.find(label, position + 1)
