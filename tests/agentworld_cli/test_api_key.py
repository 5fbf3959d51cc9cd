import json

import pytest
import yaml

from agentworld.access.directory import Key
from agentworld.access.key import key_digest


def test_a_new_key_is_printed_alone_and_its_lines_for_the_access_file_beside_it(call):
    done = call("api-key new")
    assert done.code == 0
    (key,) = done.out.splitlines()
    found = Key.model_validate(yaml.safe_load(done.error))
    assert (found.sha256, found.roles) == (key_digest(key), {"agent"})
    assert key not in done.error


def test_a_key_has_the_roles_that_were_said(call):
    done = call("api-key new --role auditor --role operator --role auditor --json")
    told = json.loads(done.out)
    assert told["roles"] == ["auditor", "operator"]
    assert told["sha256"] == key_digest(told["key"])
    assert done.error == ""


def test_no_key_is_printed_twice(call):
    assert call("api-key new").out != call("api-key new").out


@pytest.mark.parametrize("role", ["boss", "Agent", ""])
def test_a_role_that_is_none_makes_no_key(call, role):
    done = call(f"api-key new --role agent --role '{role}'")
    assert (done.code, done.out) == (2, "")
    assert f"{role!r} is not a role; give agent, operator or auditor" in done.error
