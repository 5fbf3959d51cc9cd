"""The rules that recognise secrets in a text, one for each kind, with literals to search first.

Most patterns are those of detect-secrets. It is used without its scanner, which reads one line at
a time and says which values it found but not where. Its plugins for entropy and for public
addresses are left out: they cannot tell a secret from a SHA. Its patterns that match only a part
of the secret, or one value in a line, are replaced by own ones.

An action of tool calls is JSON, which escapes quotes and line feeds by a backslash. The own
patterns accept both forms.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from agentworld.data.secret_values import FEWEST_DIFFERENT, is_mixed, is_password, is_token

_AROUND = " \t\r\n\"':="
_ESCAPE = re.compile(r"(?:\\[nrtbf]|(?:\x1b|\\u001b)\[[\d;]*m|%[0-9A-F]{2})\Z")
_SIGNS = ("+", "/")
_BLOB = re.compile(r"[A-Za-z0-9+/]{64}")


class Secret(NamedTuple):
    """A secret in a text."""

    start: int
    value: str
    kind: str


class Rule(NamedTuple):
    """A kind of secret, and how to find it in a text that has one of its literals."""

    kind: str
    literals: tuple[str, ...]
    """Literals in lower case; the patterns are tried only if the text has one of them."""
    patterns: Sequence[re.Pattern[str]]
    """A group of a pattern is the secret; without one, all that it matches."""
    tail: str = r"[\w-]{8}"
    """What follows the literal in every match, in RE2's syntax."""
    is_secret: Callable[[str], bool] = bool
    """Whether a match is one, by itself."""

    @property
    def hint(self) -> str:
        """A pattern in RE2's syntax that every text with such a secret matches, in any case."""
        return f"(?:{'|'.join(map(re.escape, self.literals))}){self.tail}"

    def find(self, text: str) -> Iterator[Secret]:
        """The secrets of this kind, in their order for each pattern."""
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                group = match.lastindex or 0
                value = match[group].strip(_AROUND)
                start = text.index(value, match.start(group))
                if not group and not _is_whole(text, start, start + len(value)):
                    continue
                if len(set(value)) >= FEWEST_DIFFERENT and self.is_secret(value):
                    yield Secret(start, value, self.kind)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a match is a whole word, not a part of another word or of an image in base64."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() and not _ESCAPE.search(text, max(0, start - 16), start):
        return False
    is_in_blob = (before in _SIGNS and _BLOB.fullmatch(text, max(0, start - 64), start)) or (
        after in _SIGNS and _BLOB.match(text, end)
    )
    return not after.isalnum() and not is_in_blob


def _is_signed_token(value: str) -> bool:
    """Whether the first two parts of a JSON web token are JSON."""
    return JwtTokenDetector.is_formally_valid(value.rstrip("."))


def _patterns(*sources: str) -> list[re.Pattern[str]]:
    return [re.compile(source) for source in sources]


_PEM = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-\x1e]{0,16384}(?:-[^-\x1e]{1,16384}){0,8}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|\s)+[A-Za-z0-9+/=]{16,})+)"
)
_PUTTY = r"PuTTY-User-Key-File-\d(?:(?!PuTTY-User)[^\x1e]){0,16384}?Private-MAC: [0-9a-f]+"
_KEY_WORD = "password|passwd|pass|token|secret|api-?key|access-?key"
_AFTER_ESCAPE = r"(?<=\\[nrt])"
_WORD_START = rf"(?:\b|{_AFTER_ESCAPE})"
_QUOTE = r"(?:\\{0,3}[\"'])?"
_BACKSLASH = r"\\(?![\\nrt\"'])"
"""A backslash that is a part of a value."""
_VALUE = rf"((?:[^\s\"'$\[\\]|{_BACKSLASH}){{6,}})"
_OPTION_VALUE = rf"(?!-)((?:[^\s\"'<>$\[\\]|{_BACKSLASH}){{8,}})"
_OPTION = rf"(?:(?<![\w-])|{_AFTER_ESCAPE})--[\w-]{{0,40}}(?:{_KEY_WORD})\s+{_QUOTE}{_OPTION_VALUE}"
_SSHPASS = rf"{_WORD_START}sshpass\s+-p\s*{_QUOTE}{_VALUE}"
_MYSQL = rf"{_WORD_START}mysql\w*(?=\s)[^\n|;]{{0,200}}?\s-p{_QUOTE}{_VALUE}"
_CURL = rf"{_WORD_START}curl(?=\s)[^\n|;]{{0,500}}?\s(?:-u ?|--user[ =]){_QUOTE}[^\s:\"']+:{_VALUE}"
_HEADER = (
    rf"(?i){_WORD_START}authorization{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}(?:[a-z-]+\s+)?"
    r"([\w.~+/=-]{12,})"
)
_BEARER = rf"(?i){_WORD_START}bearer\s+([\w.~+/=-]{{16,}})"
_AUTH_TOKEN = rf"_authToken\s*=\s*{_QUOTE}([\w-]{{20,}})"
_TELEGRAM_URL = r"/bot(\d{8,10}:[\w-]{35})(?![\w-])"
_URL = r"(?<=://)[^\s/:@\"'<>]{0,128}:([^\s/@\"'<>\[]{6,256})@"

RULES = (
    Rule("private-key", ("private key", "putty-user-key"), _patterns(_PEM, _PUTTY), ""),
    Rule(
        "json-web-token",
        ("eyj",),
        _patterns(r"eyJ[\w=-]{8,512}\.eyJ[\w=-]{2,}\.?[\w.+/=-]*"),
        is_secret=_is_signed_token,
    ),
    Rule(
        "aws-access-key",
        ("akia", "asia", "abia", "acca", "a3t"),
        AWSKeyDetector.denylist[:1],
        "[0-9a-z]{12}",
    ),
    Rule(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _patterns(r"gh[pousr]_[A-Za-z0-9_]{36,}", r"github_pat_[A-Za-z0-9_]{22,}"),
    ),
    Rule(
        "gitlab-token",
        ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-", "glagent-", "gloas-"),
        _patterns(r"gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|oas)-[\w-]{20,}"),
    ),
    Rule(
        "slack-token",
        ("xox", "xapp-"),
        _patterns(r"xox[a-z]-[0-9A-Za-z-]{10,}", r"xapp-[\w-]{20,}"),
    ),
    Rule("slack-webhook", ("hooks.slack.com",), SlackDetector.denylist[1:], "/services/"),
    Rule(
        "discord-webhook",
        ("/api/webhooks/",),
        _patterns(r"https://discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}"),
    ),
    Rule(
        "stripe-key",
        ("k_live_", "k_test_", "whsec_"),
        _patterns(r"[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", r"whsec_[A-Za-z0-9+/=]{24,}"),
        "[a-z0-9+/]{8}",
    ),
    Rule(
        "google-key",
        ("aiza", "ya29.", "gocspx-"),
        _patterns(r"AIza[\w-]{35}", r"ya29\.[\w-]{20,}", r"GOCSPX-[\w-]{20,}"),
    ),
    Rule("anthropic-key", ("sk-ant-",), _patterns(r"sk-ant-[\w-]{20,}")),
    Rule(
        "openai-key",
        ("sk-",),
        _patterns(r"sk-(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Z])[\w-]{20,}"),
        r"[\w-]{20}",
    ),
    Rule("hugging-face-token", ("hf_",), _patterns(r"hf_[A-Za-z0-9]{30,}"), "[a-z0-9]{20}"),
    Rule("npm-token", ("npm_",), _patterns(r"npm_[A-Za-z0-9]{36,}"), "[a-z0-9]{20}"),
    Rule("npm-token", ("_authtoken",), _patterns(_AUTH_TOKEN), r"\s*="),
    Rule("pypi-token", ("pypi-age",), PypiTokenDetector.denylist),
    Rule("sendgrid-key", ("sg.",), SendGridDetector.denylist, r"[\w-]{22}\."),
    Rule("square-secret", ("sq0csp-",), SquareOAuthDetector.denylist),
    Rule("mailchimp-key", ("-us",), MailchimpDetector.denylist, r"\d"),
    Rule("twilio-key", ("ac", "sk"), TwilioKeyDetector.denylist, "[a-z0-9]{32}"),
    Rule(
        "telegram-token",
        (":",),
        [*TelegramBotTokenDetector.denylist, *_patterns(_TELEGRAM_URL)],
        r"[\w-]{35}",
    ),
    Rule("discord-token", ("discord",), DiscordBotTokenDetector.denylist, ""),
    Rule("artifactory-key", ("akc",), ArtifactoryDetector.denylist[:1], "[a-z0-9]{10}"),
    Rule(
        "digitalocean-token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        _patterns(r"do[opr]_v1_[0-9a-f]{64}"),
    ),
    Rule("databricks-token", ("dapi",), _patterns(r"dapi[0-9a-f]{32}(?:-\d)?"), "[0-9a-f]{32}"),
    Rule(
        "shopify-token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        _patterns(r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ),
    Rule("vault-token", ("hvs.", "hvb."), _patterns(r"hv[sb]\.[\w-]{24,}")),
    Rule("grafana-token", ("glsa_", "glc_"), _patterns(r"gls?[ac]_[A-Za-z0-9_+/=]{32,}")),
    Rule("docker-token", ("dckr_pat_", "dckr_oat_"), _patterns(r"dckr_[po]at_[\w-]{20,}")),
    Rule("age-key", ("age-secret-key-",), _patterns(r"AGE-SECRET-KEY-1[0-9A-Z]{58}")),
    Rule(
        "url-password",
        ("://",),
        _patterns(_URL),
        r"[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{6}",
        is_mixed,
    ),
    Rule(
        "authorization",
        ("authorization",),
        _patterns(_HEADER),
        _QUOTE + r"\s{0,3}[:=]\s{0,3}" + _QUOTE + r"[\w -]{0,24}[\w.~+/=-]{12}",
        is_password,
    ),
    Rule("authorization", ("bearer",), _patterns(_BEARER), r"\s+[\w.~+/=-]{16}", is_token),
    Rule(
        "command-line",
        ("--",),
        _patterns(_OPTION),
        rf"[\w-]*(?:{_KEY_WORD})\s+[^\s<>$]{{8}}",
        is_mixed,
    ),
    Rule("command-line", ("sshpass",), _patterns(_SSHPASS), r"\s+-p", is_mixed),
    Rule("command-line", ("mysql",), _patterns(_MYSQL), r"\w*\s[^\n]*-p", is_mixed),
    Rule("command-line", ("curl",), _patterns(_CURL), r"\s[^\n]*-u", is_mixed),
)
