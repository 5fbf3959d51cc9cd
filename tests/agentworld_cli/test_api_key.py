import json

import pytest
import yaml

from agentworld.access.directory import Key
from agentworld.access.key import key_digest


def test_a_new_key_is_on_stdout_and_its_access_file_entry_on_stderr(call):
    result = call("api-key new")
    assert result.code == 0
    (key,) = result.out.splitlines()
    entry = Key.model_validate(yaml.safe_load(result.error))
    assert (entry.sha256, entry.roles) == (key_digest(key), {"agent"})
    assert key not in result.error


def test_a_key_has_the_requested_roles(call):
    result = call("api-key new --role auditor --role operator --role auditor --json")
    entry = json.loads(result.out)
    assert entry["roles"] == ["auditor", "operator"]
    assert entry["sha256"] == key_digest(entry["key"])
    assert result.error == ""


def test_two_new_keys_differ(call):
    assert call("api-key new").out != call("api-key new").out


@pytest.mark.parametrize("role", ["boss", "Agent", ""])
def test_an_unknown_role_makes_no_key(call, role):
    result = call(f"api-key new --role agent --role '{role}'")
    assert (result.code, result.out) == (2, "")
    assert f"{role!r} is not a role; give agent, operator or auditor" in result.error
