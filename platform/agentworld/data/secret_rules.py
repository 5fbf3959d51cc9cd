"""What looks like a secret in a text: one rule a kind, behind literals that are cheap to find.

Most patterns are those of detect-secrets. It is used without its scanner, which reads one line at
a time and says which values it found but not where. Its plugins for entropy and for public
addresses are left out: they cannot tell a secret from a SHA. Its patterns that match only a part
of the secret, or one value in a line, are replaced by own ones.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from agentworld.data.secret_values import is_mixed

_AROUND = " \t\r\n\"':="
_BLOB = re.compile(r"[A-Za-z0-9+/]{64}")


class Secret(NamedTuple):
    """A part of a text that nobody should learn."""

    start: int
    value: str
    kind: str


class Rule(NamedTuple):
    """A kind of secret, and how it is found in a text that holds one of its literals."""

    kind: str
    literals: tuple[str, ...]
    """In lower case: without one of them in a text, its patterns are not tried."""
    patterns: Sequence[re.Pattern[str]]
    """A group of a pattern is the secret; without one, all that it matches."""

    def find(self, text: str) -> Iterator[Secret]:
        """The secrets of this kind, in their order for each pattern."""
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                group = match.lastindex or 0
                value = match[group].strip(_AROUND)
                start = text.index(value, match.start(group))
                if _is_whole(text, start, start + len(value)) and len(set(value)) > 5:
                    yield Secret(start, value, self.kind)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a match is a word of its own, and no part of another or of an image in base64."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() or after.isalnum():
        return False
    return not (_BLOB.fullmatch(text, max(0, start - 64), start) or _BLOB.match(text, end + 1))


class Mixed(Rule):
    """A rule whose match may be a plain word, which is no secret."""

    def find(self, text: str) -> Iterator[Secret]:
        """Only what no dictionary has."""
        return (secret for secret in super().find(text) if is_mixed(secret.value))


class SignedToken(Rule):
    """JSON web tokens: their first two parts are JSON."""

    def find(self, text: str) -> Iterator[Secret]:
        """As detect-secrets checks them, with the signature."""
        for secret in super().find(text):
            if JwtTokenDetector.is_formally_valid(secret.value.rstrip(".")):
                yield secret


def _patterns(*sources: str) -> list[re.Pattern[str]]:
    return [re.compile(source) for source in sources]


_PEM = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,16384}(?:-[^-]{1,200}){0,4}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|\s)+[A-Za-z0-9+/=]{16,})+)"
)
_PUTTY = r"PuTTY-User-Key-File-\d[\s\S]{0,16384}?Private-MAC: [0-9a-f]+"
_COMMAND_LINES = (
    r"--[\w-]*(?:password|passwd|pass|token|secret|api-?key|access-?key)\s+[\"']?"
    r"([^\s\"'<>$-][^\s\"'<>$]{7,})",
    r"\bsshpass\s+-p\s*[\"']?([^\s\"'$]{6,})",
    r"\bmysql\w*\s[^\n|;]{0,200}?-p[\"']?([^\s\"'$]{6,})",
    r"\bcurl\s[^\n|;]{0,500}?(?:-u|--user)[ =]?[\"']?[^\s:\"']+:([^\s\"'$]{6,})",
)
_HEADERS = (
    r"(?i)\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z-]+\s+)?([\w.~+/=-]{12,})",
    r"(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{16,})",
)

RULES = (
    Rule("private-key", ("private key", "putty-user-key"), _patterns(_PEM, _PUTTY)),
    SignedToken(
        "json-web-token", ("eyj",), _patterns(r"eyJ[\w=-]{8,}\.eyJ[\w=-]{2,}\.?[\w.+/=-]*")
    ),
    Rule("aws-access-key", ("akia", "asia", "abia", "acca", "a3t"), AWSKeyDetector.denylist[:1]),
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
    Rule("slack-webhook", ("hooks.slack.com",), SlackDetector.denylist[1:]),
    Rule(
        "discord-webhook",
        ("/api/webhooks/",),
        _patterns(r"https://discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}"),
    ),
    Rule(
        "stripe-key",
        ("k_live_", "k_test_", "whsec_"),
        _patterns(r"[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ),
    Rule(
        "google-key",
        ("aiza", "ya29.", "gocspx-"),
        _patterns(r"AIza[\w-]{35}", r"ya29\.[\w-]{20,}", r"GOCSPX-[\w-]{20,}"),
    ),
    Rule("anthropic-key", ("sk-ant-",), _patterns(r"sk-ant-[\w-]{20,}")),
    Rule(
        "openai-key", ("sk-",), _patterns(r"sk-(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Z])[\w-]{20,}")
    ),
    Rule("hugging-face-token", ("hf_",), _patterns(r"hf_[A-Za-z0-9]{30,}")),
    Rule(
        "npm-token",
        ("npm_", "_authtoken"),
        _patterns(r"npm_[A-Za-z0-9]{36,}", r"_authToken\s*=\s*[\"']?([\w-]{20,})"),
    ),
    Rule("pypi-token", ("pypi-age",), PypiTokenDetector.denylist),
    Rule("sendgrid-key", ("sg.",), SendGridDetector.denylist),
    Rule("square-secret", ("sq0csp-",), SquareOAuthDetector.denylist),
    Rule("mailchimp-key", ("-us",), MailchimpDetector.denylist),
    Rule("twilio-key", ("ac", "sk"), TwilioKeyDetector.denylist),
    Rule("telegram-token", ("bot", "telegram", ":aa"), TelegramBotTokenDetector.denylist),
    Rule("discord-token", ("discord",), DiscordBotTokenDetector.denylist),
    Rule("artifactory-key", ("akc", "artifactory"), ArtifactoryDetector.denylist[:1]),
    Rule(
        "digitalocean-token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        _patterns(r"do[opr]_v1_[0-9a-f]{64}"),
    ),
    Rule("databricks-token", ("dapi",), _patterns(r"dapi[0-9a-f]{32}(?:-\d)?")),
    Rule(
        "shopify-token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        _patterns(r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ),
    Rule("vault-token", ("hvs.", "hvb."), _patterns(r"hv[sb]\.[\w-]{24,}")),
    Rule("grafana-token", ("glsa_", "glc_"), _patterns(r"gls?[ac]_[A-Za-z0-9_+/=]{32,}")),
    Rule("docker-token", ("dckr_",), _patterns(r"dckr_[po]at_[\w-]{20,}")),
    Rule("age-key", ("age-secret-key-",), _patterns(r"AGE-SECRET-KEY-1[0-9A-Z]{58}")),
    Rule("cloudant-key", ("cloudant",), CloudantDetector.denylist),
    Rule("softlayer-key", ("softlayer",), SoftlayerDetector.denylist),
    Rule("ibm-key", ("ibm", "iam"), IbmCloudIamDetector.denylist),
    Rule("ibm-key", ("secret",), IbmCosHmacDetector.denylist),
    Mixed(
        "url-password", ("://",), _patterns(r"(?<=://)[^\s/:@\"'<>]{0,128}:([^\s/@\"'<>]{6,256})@")
    ),
    Mixed("authorization", ("authorization", "bearer", "basic"), _patterns(*_HEADERS)),
    Mixed("command-line", ("--", "sshpass", "mysql", "curl"), _patterns(*_COMMAND_LINES)),
)
