"""Trajectories with planted secrets, and with similar values that are not secrets.

All values are composed at random from parts, so that no file here contains anything that a scanner
reports.
"""

import base64
import hashlib
import json
import string
import uuid
from collections.abc import Callable, Iterator
from random import Random

from agentworld.data.redaction import redact
from agentworld.records.trajectory import Trajectory
from make import records

_ALPHANUMERIC = string.ascii_letters + string.digits
_URL_SAFE = _ALPHANUMERIC + "-_"
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"


def _run(rng: Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def _password(rng: Random) -> str:
    word, number = _run(rng, string.ascii_letters, 7), _run(rng, string.digits, 3)
    return word + number + rng.choice("!#%_-")  # a shell and a URL need no quoting of these


def _json_web_token(rng: Random) -> str:
    parts = [{"alg": "HS256"}, {"sub": _run(rng, string.digits, 10), "name": "ada"}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(part.rstrip("=") for part in encoded), _run(rng, _URL_SAFE, 43)])


def _private_key(rng: Random) -> str:
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", ""])
    lines = [_run(rng, _ALPHANUMERIC + "+/", 64) for _ in range(rng.randint(4, 20))]
    edge = "-" * 5
    return "\n".join(
        [f"{edge}BEGIN {kind}PRIVATE KEY{edge}", *lines, f"{edge}END {kind}PRIVATE KEY{edge}"]
    )


def _prefixed(prefix: str, alphabet: str, length: int) -> Callable[[Random], str]:
    return lambda rng: prefix + _run(rng, alphabet, length)


_ANYWHERE = (
    "{}",
    "export SERVICE_CREDENTIAL={}",
    "the value is {}, keep it",
    '{{"value": "{}", "ok": true}}',
    "login --with={}\n",
    r'{{"stdout": "a\n{}\nb"}}',
    "\x1b[32m{}\x1b[0m",
    "[2026-01-02 03:04:05] INFO started with {} (env)",
)
_API_KEYS = (
    "API_KEY={}",
    '{{"id": 7, "api_key": "{}"}}',
    "apiKey: {}",
    "client(api_key='{}')",
    "x-api-key: {}",
    "mytool run --api-key {} --fast",
)
_PASSWORDS = (
    "DB_PASSWORD={}",
    '{{"user": "ada", "password": "{}"}}',
    "password: {}\nport: 5432",
    "connect(host, passwd='{}')",
    "tool login --user ada --password {}",
    "PGPASSWORD={} psql -h db -c 'select 1'",
    r'{{"stdout": "{{\"password\": \"{}\"}}"}}',
)
_URLS = (
    "postgres://app:{}@db.internal:5432/main",
    "git clone https://ada:{}@git.example.com/a.git",
)
_BEARERS = (
    'curl -H "Authorization: Bearer {}" https://api.example.com/v1',
    '{{"headers": {{"Authorization": "Bearer {}"}}}}',
    "authorization: token {}",
)
_AWS = (
    "aws_secret_access_key = {}",
    '{{"SecretAccessKey": "{}"}}',
    "export AWS_SECRET_ACCESS_KEY={}",
)

_Make = Callable[[Random], str]
KINDS: dict[str, tuple[_Make, tuple[str, ...]]] = {
    "aws access key": (_prefixed("AK" + "IA", string.ascii_uppercase + "234567", 16), _ANYWHERE),
    "aws secret key": (_prefixed("", _ALPHANUMERIC + "+/", 40), _AWS),
    "github classic": (_prefixed("gh" + "p_", _ALPHANUMERIC, 36), _ANYWHERE),
    "github fine-grained": (_prefixed("github" + "_pat_", _ALPHANUMERIC + "_", 82), _ANYWHERE),
    "gitlab": (_prefixed("glp" + "at-", _URL_SAFE, 20), _ANYWHERE),
    "slack bot": (
        lambda rng: f"xo{'xb'}-{_run(rng, string.digits, 12)}-{_run(rng, _ALPHANUMERIC, 24)}",
        _ANYWHERE,
    ),
    "slack webhook": (
        lambda rng: "/".join(
            [
                "https://hooks.slack" + ".com/services",
                "T" + _run(rng, _ALPHANUMERIC, 8),
                "B" + _run(rng, _ALPHANUMERIC, 8),
                _run(rng, _ALPHANUMERIC, 24),
            ]
        ),
        _ANYWHERE,
    ),
    "stripe": (_prefixed("sk" + "_live_", _ALPHANUMERIC, 24), _ANYWHERE),
    "google api": (_prefixed("AI" + "za", _URL_SAFE, 35), _ANYWHERE),
    "openai project": (_prefixed("sk" + "-proj-", _URL_SAFE, 74), _ANYWHERE),
    "anthropic": (_prefixed("sk" + "-ant-api03-", _URL_SAFE, 95), _ANYWHERE),
    "hugging face": (_prefixed("h" + "f_", string.ascii_letters, 34), _ANYWHERE),
    "npm": (_prefixed("np" + "m_", _ALPHANUMERIC, 36), _ANYWHERE),
    "pypi": (_prefixed("pypi-" + "AgEIcHlwaS5vcmc", _URL_SAFE, 120), _ANYWHERE),
    "sendgrid": (
        lambda rng: f"S{'G'}.{_run(rng, _URL_SAFE, 22)}.{_run(rng, _URL_SAFE, 43)}",
        _ANYWHERE,
    ),
    "twilio": (_prefixed("S" + "K", _HEX, 32), _ANYWHERE),
    "json web token": (_json_web_token, _ANYWHERE),
    "private key": (_private_key, ("{}", "cat id_key\n{}\n$", "key file:\n{}")),
    "url password": (_password, _URLS),
    "password": (_password, _PASSWORDS),
    "api key": (_prefixed("", _LOWER, 32), _API_KEYS),
    "bearer": (_prefixed("", _ALPHANUMERIC, 40), _BEARERS),
    "azure account key": (
        lambda rng: base64.b64encode(rng.randbytes(64)).decode(),
        ("AccountName=store;AccountKey={};EndpointSuffix=core.windows.net",),
    ),
    "telegram": (
        lambda rng: f"{_run(rng, string.digits[1:], 10)}:AA{_run(rng, _URL_SAFE, 33)}",
        ("https://api.telegram.org/bot{}/getMe", "TELEGRAM={}"),
    ),
}

_HASHES: tuple[tuple[Callable[[Random], str], tuple[str, ...]], ...] = (
    (
        lambda rng: hashlib.sha1(rng.randbytes(8)).hexdigest(),
        (
            "commit {}\nAuthor: Ada",
            "index {}..0000000 100644",
            '{{"sha": "{}"}}',
            "{}  a.txt",
            "https://git.example.com/a/commit/{}",
            "HEAD is now at {} fix the token test",
            "1700000000:{}",
            "cache_key={}",
            "resume_token: {}",
            '{{"next_token": "{}"}}',
            "task{}",
        ),
    ),
    (
        lambda rng: hashlib.sha256(rng.randbytes(8)).hexdigest(),
        (
            "sha256:{}",
            "pip install a --hash=sha256:{}",
            "{} *a.tar.gz",
            "Digest: sha256:{}",
            '{{"password_hash": "{}"}}',
            "token_sha256: {}",
            "image@sha256:{}",
        ),
    ),
    (
        lambda rng: _run(rng, _HEX, rng.randint(7, 12)),
        ("{} (HEAD -> main) add a secret scanner", "* {} merge", "git show {}", "bot-{}"),
    ),
    (
        lambda rng: str(uuid.UUID(bytes=rng.randbytes(16))),
        (
            '{{"id": "{}"}}',
            "token_id: {}",
            "secret={}",
            "session {} opened",
            '{{"secret_id": "{}"}}',
            "request-id: {}",
            "PARTUUID={}",
            "{}",
        ),
    ),
    (
        lambda rng: base64.b64encode(rng.randbytes(rng.randint(100, 4_000))).decode(),
        ("data:image/png;base64,{}", '{{"type": "image", "data": "{}"}}'),
    ),
    (
        lambda rng: base64.b64encode(hashlib.sha512(rng.randbytes(8)).digest()).decode(),
        ('{{"integrity": "sha512-{}"}}', "integrity sha512-{}"),
    ),
    (
        lambda rng: hashlib.md5(rng.randbytes(8)).hexdigest(),
        ('ETag: "{}"', "MD5 (a.txt) = {}", "trace_id={}", "md5:{}"),
    ),
)


def planted_secrets(number: int, seed: int = 0) -> Iterator[tuple[str, str, Trajectory]]:
    """`number` tuples of a kind, a secret and a trajectory that contains the secret."""
    rng = Random(seed)
    for index in range(number):
        kind = list(KINDS)[index % len(KINDS)]
        make, contexts = KINDS[kind]
        secret = make(rng)
        yield kind, secret, _trajectory(rng, rng.choice(contexts).format(secret), secret)


def planted_hashes(number: int, seed: int = 0) -> Iterator[tuple[str, Trajectory]]:
    """`number` pairs of a value that is not a secret, and a trajectory that contains it."""
    rng = Random(seed)
    for index in range(number):
        make, contexts = _HASHES[index % len(_HASHES)]
        value = make(rng)
        yield value, _trajectory(rng, rng.choice(contexts).format(value), value)


def secret_recall(number: int = 4_800) -> float:
    """The share of planted secrets that a redaction removed from their trajectories."""
    removed = [
        json.dumps(secret)[1:-1] not in redact(trajectory).trajectory.model_dump_json()
        for _, secret, trajectory in planted_secrets(number)
    ]
    return sum(removed) / len(removed)


def hashes_redacted(number: int = 7_000) -> int:
    """The number of planted SHAs, UUIDs, digests and images in base64 that a redaction changed."""
    return sum(
        redact(trajectory).trajectory != trajectory for _, trajectory in planted_hashes(number)
    )


def _trajectory(rng: Random, text: str, value: str) -> Trajectory:
    """The value is in the action or the observation of a turn; in half of them it is alone in
    another.
    """
    echo = value if rng.random() < 1 / 2 else "it"
    turns = [("ls", "a.txt\nb.txt"), ("cat a.txt", f"one\n{text}\ntwo"), (f"use {echo}", "ok")]
    if rng.random() < 1 / 2:
        turns[1:] = [(text, "done"), ("show", f"last: {echo}")]
    return records.trajectory(*turns, domain="text", seed=rng.randrange(1_000))
