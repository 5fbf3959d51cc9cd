import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from agentworld.access.base import ROLES
from agentworld.access.directory import Directory
from agentworld.access.key import key_digest, new_key
from agentworld.access.limits import Limits
from agentworld.errors import InputError
from make.examples import examples

KEY = new_key()
DIGEST = key_digest(KEY)
FILE = {
    "tenants": {
        "acme": {
            "keys": {"ci": {"sha256": DIGEST, "roles": ["agent", "operator"]}},
            "service_accounts": {"team-a/trainer": ["agent"]},
            "limits": {"open_runs": 4, "steps_per_minute": 600},
        },
        "audit": {"keys": {"jo": {"sha256": key_digest("other"), "roles": ["auditor"]}}},
    }
}


GUIDE = Path(__file__).parents[3] / "docs/guides/access.md"


@pytest.fixture
def load(tmp_path):
    def from_text(text):
        path = tmp_path / "access.yaml"
        path.write_text(text if isinstance(text, str) else yaml.safe_dump(text), encoding="utf-8")
        return Directory.load(path)

    return from_text


def test_a_file_names_tenants_with_their_keys_accounts_and_limits(load):
    directory = load(FILE)
    caller = directory.callers_by_key()[DIGEST]
    assert (caller.tenant, caller.name, caller.run) == ("acme", "acme/ci", None)
    assert caller.roles == {"agent", "operator"}
    account = directory.callers_by_account()["team-a/trainer"]
    assert (account.tenant, account.name, account.roles) == ("acme", "team-a/trainer", {"agent"})
    assert directory.tenants["acme"].limits.open_runs == 4
    assert directory.tenants["audit"].limits.open_runs is None


def test_a_tenant_may_have_no_callers(load):
    assert load("tenants: {acme: {}}").callers_by_key() == {}


def test_the_example_of_the_access_guide_loads(load):
    example = re.search(r"^```yaml\n(tenants:.*?)^```", GUIDE.read_text(), re.M | re.S)
    directory = load(example[1])
    assert {name.count("/") for name in directory.callers_by_account()} == {1}
    roles = {role for caller in directory.callers_by_key().values() for role in caller.roles}
    assert roles == ROLES


def test_the_guide_names_every_role_and_every_limit():
    text = GUIDE.read_text()
    assert [name for name in (*ROLES, *Limits.model_fields) if f"`{name}`" not in text] == []


def problem(load, text):
    with pytest.raises(InputError) as error:
        load(text)
    message = str(error.value)
    assert message.count("\n") == 0
    assert error.value.__cause__ is None
    return message


def file_with(**fields):
    return {"tenants": {"acme": {**FILE["tenants"]["acme"], **fields}}}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "the whole"),
        ("tenants: [", "line 1 is not YAML"),
        ("tenants: {a: \x00}", "is not YAML"),
        ("tenants: {a: 2020-99-99}", "is not YAML"),
        ("others: {}", "tenants: Field required"),
        ({"tenants": {"acme": {"secrets": {}}}}, "tenants.acme.secrets: Extra"),
        (file_with(keys={"ci": {"sha256": DIGEST}}), "tenants.acme.keys.ci.roles: Field required"),
        (file_with(keys={"ci": {"sha256": DIGEST, "roles": []}}), "keys.ci.roles"),
        (file_with(keys={"ci": {"sha256": DIGEST, "roles": ["boss"]}}), "keys.ci.roles"),
        (file_with(service_accounts={"trainer": ["agent"]}), "service_accounts.trainer"),
        (file_with(limits={"open_runs": 0}), "tenants.acme.limits.open_runs"),
        (file_with(limits={"open_doors": 1}), "tenants.acme.limits.open_doors: Extra"),
        ({"tenants": {"Acme Inc.": {}}}, "tenants.(no name)"),
    ],
    ids=range(13),
)
def test_an_invalid_file_is_rejected_with_one_sentence_that_names_the_place(load, text, place):
    assert place in problem(load, text)


@pytest.mark.parametrize(
    "text",
    [
        file_with(keys={"ci": {"sha256": KEY, "roles": ["agent"]}}),
        file_with(keys={KEY: {"sha256": DIGEST, "roles": ["agent"]}}),
        file_with(keys={"ci": KEY}),
        file_with(keys=KEY),
        file_with(service_accounts={KEY: ["agent"]}),
        file_with(service_accounts={"team-a/trainer": [KEY]}),
        file_with(limits={"open_runs": KEY}),
        file_with(**{KEY: {}}),
        {"tenants": {KEY: {}}},
        {KEY: {}},
        KEY,
        f"tenants: [{KEY}",
        f"tenants: {{{KEY}: 1, {KEY}: 2}}",
        f"{KEY}\x00",
    ],
    ids=range(14),
)
def test_the_error_for_a_misplaced_key_does_not_contain_the_key(load, text):
    assert KEY[4:] not in problem(load, text)


def test_one_key_of_two_tenants_is_refused_with_both_names(load):
    same_key = {**FILE["tenants"]["audit"]["keys"]["jo"], "sha256": DIGEST}
    content = {"tenants": {"acme": FILE["tenants"]["acme"], "audit": {"keys": {"jo": same_key}}}}
    message = problem(load, content)
    assert "acme/ci and audit/jo share one key" in message
    assert DIGEST not in message


def test_one_key_under_two_names_of_a_tenant_is_refused(load):
    key = {"sha256": DIGEST, "roles": ["agent"]}
    assert "acme/a and acme/b share one key" in problem(load, file_with(keys={"a": key, "b": key}))


def test_one_service_account_of_two_tenants_is_refused(load):
    accounts = {"service_accounts": {"team-a/trainer": ["agent"]}}
    content = {"tenants": {"acme": accounts, "other": accounts}}
    assert "acme and other share one service account" in problem(load, content)


def test_a_duplicate_tenant_name_is_refused(load):
    text = "tenants:\n  acme: {limits: {open_runs: 1}}\n  acme: {}\n"
    assert "repeats a key" in problem(load, text)


def test_a_missing_file_raises_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \(No such file"):
        Directory.load(tmp_path / "gone.yaml")


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_other_content_of_a_file_raises_an_input_error(tmp_path, data):
    (tmp_path / "access.yaml").write_bytes(data)
    with pytest.raises(InputError):
        Directory.load(tmp_path / "access.yaml")
