import json
import pickle
import re
from collections import Counter
from pathlib import Path

import pytest

from agentworld.data.filters import FilteredTrajectory
from agentworld.data.redaction import redact, redact_all, redact_trajectories
from agentworld.data.secret_rules import RULES
from agentworld.data.secret_search import find_secrets
from agentworld.domains.base import Call
from agentworld.domains.calls import render_calls
from make import records
from make.secrets import KINDS, hashes_redacted, planted_hashes, planted_secrets, secret_recall

ROOT = Path(__file__).parents[3]
KEY, OTHER_KEY = (f"AK{'IA'}{middle}7Q2W9E4R6T8Y" for middle in ("ZXCV", "BNMA"))
PASSWORD, PASSPHRASE = "Tr0ub4dor" + "3x", "q8W7e6R5t4" + "Y3u2I1o0"
PLACEHOLDER, OTHER_PLACEHOLDER = (f"[REDACTED:aws-access-key:{number}]" for number in (1, 2))


def log(*turns, **fields):
    return records.trajectory(*turns, domain="text", **fields)


def secrets_in(text):
    return [(secret.kind, secret.value) for secret in find_secrets(text)]


@pytest.mark.compute
def test_at_least_95_percent_of_planted_secrets_of_20_kinds_are_found():
    assert len(KINDS) >= 20
    assert secret_recall(50 * len(KINDS)) >= 0.95


def test_each_planted_secret_is_in_its_trajectory():
    for _, secret, trajectory in planted_secrets(len(KINDS)):
        assert any(secret in f"{turn.action} {turn.observation}" for turn in trajectory.turns)


@pytest.mark.compute
def test_hashes_uuids_and_images_are_not_redacted():
    assert hashes_redacted(1_400) == 0


@pytest.mark.compute
def test_redacting_many_trajectories_equals_redacting_each_alone():
    trajectories = [trajectory for _, _, trajectory in planted_secrets(20 * len(KINDS), seed=1)]
    trajectories += [trajectory for _, trajectory in planted_hashes(140, seed=1)]
    assert redact_all(trajectories) == [redact(trajectory) for trajectory in trajectories]


def test_the_same_secret_has_the_same_placeholder_everywhere():
    tools = [
        {
            "name": "open",
            "description": f"such as {OTHER_KEY}",
            "input_schema": {"type": "object", "examples": [{"key": KEY}, 7]},
            "output_schema": {"const": KEY},
        }
    ]
    trajectory = log(
        (f"set {KEY}", f"{OTHER_KEY}\n{KEY}"), ("get", KEY), initial_state=f"a: {KEY}", tools=tools
    )
    result, counts = redact(trajectory)
    assert counts == {"aws-access-key": 2}
    assert result.initial_state == f"a: {PLACEHOLDER}"
    assert result.tools[0].description == f"such as {OTHER_PLACEHOLDER}"
    assert result.tools[0].input_schema["examples"] == [{"key": PLACEHOLDER}, 7]
    assert result.tools[0].output_schema == {"const": PLACEHOLDER}
    assert [(turn.action, turn.observation) for turn in result.turns] == [
        (f"set {PLACEHOLDER}", f"{OTHER_PLACEHOLDER}\n{PLACEHOLDER}"),
        ("get", PLACEHOLDER),
    ]


def test_a_secret_is_also_redacted_where_no_label_marks_the_secret():
    value = "tr0ub4dor" + "3x"
    result, counts = redact(log((f"echo {value}", value), (f"export PASSWORD={value}", "")))
    assert counts == {"password": 1}
    assert result.turns[0].observation == "[REDACTED:password:1]"


def test_the_state_and_the_task_are_redacted_too():
    task = {
        "id": "1",
        "family": "find",
        "instruction": f"use {KEY}",
        "initial_state": KEY,
        "success": {"closing": "done", "output": KEY},
        "turn_limit": 3,
        "seed": 0,
    }
    trajectory = log(("a", "b"), task=task)
    turn = trajectory.turns[0].model_copy(update={"state": f"key: {KEY}"})
    result = redact(trajectory.model_copy(update={"turns": (turn,)})).trajectory
    assert result.turns[0].state == f"key: {PLACEHOLDER}"
    assert KEY not in result.model_dump_json()
    assert result.task.success.output == PLACEHOLDER


def test_a_secret_that_occurs_only_in_the_task_is_redacted():
    task = {
        "id": "1",
        "family": "find",
        "instruction": f"use {KEY}",
        "initial_state": "",
        "success": {"closing": "done", "output": ""},
        "turn_limit": 3,
        "seed": 0,
    }
    assert redact(log(("a", "b"), task=task)).trajectory.task.instruction == f"use {PLACEHOLDER}"


def test_a_secret_that_begins_with_another_secret_is_redacted_completely():
    first_password, second_password = "tr0ub4dor", "tr0ub4dor" + "-and-3x"
    text = f"PASSWORD={first_password}\nOTHER_PASSWORD={second_password}"
    result = redact(log(("env", text), ("say", second_password))).trajectory
    assert result.turns[1].observation == "[REDACTED:password:2]"


def test_a_span_moves_with_its_text():
    observation = f"{KEY}\nsteps left: 3\n{OTHER_KEY}\nend"
    start = observation.index("steps")
    spans = [{"start": start, "end": start + 13, "what": "steps left"}]
    spans.append({"start": start + 14, "end": start + 20, "what": "cut within a secret"})
    turn = records.trajectory(("a", observation)).turns[0].model_copy(update={})
    turn = type(turn).model_validate({**turn.model_dump(), "spans": spans})
    result = redact(log(("x", "y")).model_copy(update={"turns": (turn,)})).trajectory.turns[0]
    texts = [result.observation[span.start : span.end] for span in result.spans]
    assert texts == ["steps left: 3", OTHER_PLACEHOLDER]


def test_a_redacted_trajectory_is_not_redacted_again():
    for _, _, trajectory in planted_secrets(4 * len(KINDS), seed=2):
        result = redact(trajectory).trajectory
        assert redact(result) == (result, Counter())


def test_a_trajectory_without_secrets_is_the_same_object():
    trajectory = log(("look", "a password is needed"))
    assert redact(trajectory).trajectory is trajectory


@pytest.mark.compute
def test_a_stream_keeps_its_order_and_the_digests_as_recorded():
    trajectories = [log(("a", KEY if number % 2 else "b"), seed=number) for number in range(600)]
    counts = Counter({"short trajectory": 1})
    stream = redact_trajectories(
        (FilteredTrajectory(item.digest, item) for item in trajectories), counts
    )
    result = list(stream)
    assert [item.digest for item in result] == [item.digest for item in trajectories]
    assert [item.trajectory for item in result] == [
        redact(item).trajectory for item in trajectories
    ]
    assert counts == {"short trajectory": 1, "redacted aws-access-key": 300}


def test_redact_all_can_be_pickled():
    assert pickle.loads(pickle.dumps(redact_all)) is redact_all  # noqa: S301  our own bytes


@pytest.mark.parametrize(
    "text",
    [
        "password: ",
        "Enter your password: please type it here",
        '"password": {"type": "string"}',
        "password = getpass.getpass2(prompt)",
        "password = os.environ['PASSWORD_2']",
        "const JWT_SECRET = process.env.JWT_SECRET_2 || fallback",
        "api_key=$API_KEY_1",
        "api_key: ${API_KEY_1}",
        "api_key=<your-key-2>",
        "password=********",
        "secret: /run/secrets/key1",
        "secret_name: production-2",
        "max_tokens: 12345678",
        '"next_token": "page0000000000002abcdef"',
        "tokenizer = cl100k_base_v2_and_more",
        "token: node_12345_of_tree_7",
        "the basic configuration of release-2 follows",
        "task-1234567890abcdefghijABCDEFGH",
        f"sha1:AK{'IA'}ZXCV7Q2W9E4R6T8Yabcdef",
        "http://localhost:8080/a@b",
        "curl --user-agent tool/1.0 https://example.com",
        "mysql --port=3306 -h db",
        "password_expires: 2026-01-02T03:04:05Z",
    ],
)
def test_text_that_only_looks_like_a_secret_is_not_reported(text):
    assert secrets_in(text) == []


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("mysql -u root -pTr0ub4dor", "command-line", "Tr0ub4dor"),
        ("sshpass -p 'Tr0ub4dor' ssh a", "command-line", "Tr0ub4dor"),
        ("curl -u ada:Tr0ub4dor https://a", "command-line", "Tr0ub4dor"),
        ("redis://:Tr0ub4dor@cache:6379", "url-password", "Tr0ub4dor"),
        ("db_password => 'correct Horse 7'", "password", "correct Horse 7"),
        ('"accessKey": "q8w7e6r5t4"', "api-key", "q8w7e6r5t4"),
        ("config[\"secret_key\"] = 'q8w7e6r5t4'", "secret", "q8w7e6r5t4"),
    ],
)
def test_a_secret_is_found_by_the_words_around_the_value(text, kind, value):
    assert secrets_in(text) == [(kind, value)]


def test_a_private_key_is_found_completely_even_without_its_end():
    dashes, body = "-" * 5, "\n".join("MIIEpAIBAAKCAQEA7bq0fJ2x" for _ in range(9))
    start = f"{dashes}BEGIN RSA PRIVATE KEY{dashes}\nProc-Type: 4,ENCRYPTED\n\n{body}\n"
    full_key = f"{start}{dashes}END RSA PRIVATE KEY{dashes}"
    assert secrets_in(f"a\n{full_key}\nb") == [("private-key", full_key)]
    cut_key = f"{dashes}BEGIN PRIVATE KEY{dashes}\n{body}"
    assert secrets_in(f"{cut_key}\n(cut)") == [("private-key", cut_key)]


def test_letters_with_longer_lower_case_do_not_shift_the_found_secret():
    assert secrets_in(f"\u0130\u0130 password={'Tr0ub4dor'}") == [("password", "Tr0ub4dor")]


@pytest.mark.parametrize(
    "text",
    [
        "password=" + "/a.." * 2_000,
        "://" * 2_000,
        "curl " * 2_000,
        "mysql x" * 2_000,
        "-----BEGIN PRIVATE KEY-----" * 200,
        "password " * 2_000,
        "key" + " " * 10_000,
        "-" * 10_000,
        "eyJ" * 4_000,
        "sk-" * 4_000,
        "\\ncurl " * 2_000,
        "\\n--token " * 2_000,
        "mysql -p" + "\\" * 10_000,
        "authorization" + '\\"' * 10_000,
    ],
)
def test_long_repetitive_text_is_searched_quickly_and_contains_no_secret(text):
    assert secrets_in(text) == []


def test_the_guide_names_every_kind_of_secret():
    guide = (ROOT / "docs/guides/data-sets.md").read_text()
    rows = re.findall(r"^\| (`.*`) \| (?:their|the name|`scheme|the header|`--)", guide, re.M)
    kinds = {kind for row in rows for kind in re.findall(r"`([a-z-]+)`", row)}
    assert kinds == {rule.kind for rule in RULES} | {"password", "secret", "api-key", "token"}


def test_a_truncated_private_key_is_redacted_and_the_next_turn_is_kept():
    body = "\n".join(f"MIIE{number}aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567" for number in range(3))
    key = f"-----BEGIN RSA PRIV{'ATE'} KEY-----\n{body}"
    result, counts = redact(log(("head -4 key.pem", key), ("/usr/bin/python3 x.py", "ok")))
    assert counts == {"private-key": 1}
    assert "MIIE0" not in result.model_dump_json()
    assert result.turns[1].action == "/usr/bin/python3 x.py"


def test_the_end_of_one_text_does_not_label_the_start_of_the_next_text():
    trajectory = log(("app --token", "7f9ac3d1e2 built"))
    assert redact(trajectory).trajectory == trajectory


@pytest.mark.parametrize(
    "code",
    [
        "secret = hmacSha256(key, data)",
        "api_key = sha256Hex(data)",
        "const password = b2Hash(user)",
    ],
)
def test_a_function_call_after_a_label_is_no_secret(code):
    assert not secrets_in(code)


def test_a_long_secret_is_found_to_its_end():
    value = "aB3dE6gH9jK" * 60
    assert {*secrets_in(f"DB_PASSWORD={value} next")} == {("password", value)}


def test_many_key_headers_are_searched_quickly_and_contain_no_secret():
    assert not secrets_in("PuTTY-User-Key-File-2\n" * 20_000)


COMMANDS = {
    "curl": f'curl -u "bob:{PASSWORD}" https://a',
    "curl in line 2": f"cd x\ncurl -u bob:{PASSWORD} https://a",
    "curl in quotes": f'bash -c "curl -u \\"bob:{PASSWORD}\\" https://a"',
    "sshpass": f'sshpass -p "{PASSWORD}" ssh a',
    "sshpass in line 2": f"cd x\nsshpass -p {PASSWORD} ssh a",
    "mysql": f'mysql -p"{PASSWORD}" db',
    "mysql before line 2": f"mysql -u root -p{PASSWORD}\nls",
    "option": f'tool login --password "{PASSWORD}"',
    "option in line 2": f"tool login \\\n--password {PASSWORD}\nls",
    "header": f'curl -H \'{{"Authorization": "{PASSPHRASE}"}}\' https://a',
    "header in line 2": f"cat <<END\nAuthorization: Basic {PASSPHRASE}\nEND",
    "bearer in line 2": f"cat <<END\nBearer {PASSPHRASE}\nEND",
    "npm": f'npm config set "//a/:_authToken={PASSPHRASE}ab"',
    "quoted npm": f'echo _authToken="{PASSPHRASE}ab"',
    "label in quotes": f'echo "{{\\"password\\": \\"{PASSWORD}\\"}}"',
    "colour": f"echo '\x1b[32m{KEY}\x1b[0m'",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_secret_in_a_call_is_redacted_as_in_plain_text(command):
    secrets = [secret for secret in (PASSWORD, PASSPHRASE, KEY) if secret in command]
    call = render_calls([Call("bash", {"command": command})])
    in_text, in_call = (
        item.trajectory.turns[0].action
        for item in redact_all([log((command, "")), log((call, ""))])
    )
    assert [secret for secret in secrets if secret in in_text + in_call] == []
    assert json.loads(in_call)["arguments"]["command"] == in_text


def test_a_secret_at_the_end_of_a_line_of_a_call_has_its_placeholder_everywhere():
    call = render_calls([Call("bash", {"command": f"mysql -p{PASSWORD}\nls"})])
    result = redact(log((call, "a.txt"), ("cat a.txt", PASSWORD))).trajectory
    assert result.turns[1].observation == "[REDACTED:command-line:1]"


def test_a_backslash_in_a_password_of_a_command_is_a_part_of_the_password():
    assert secrets_in("sshpass -p 'Tr0ub4dor\\3x' ssh a") == [("command-line", "Tr0ub4dor\\3x")]
