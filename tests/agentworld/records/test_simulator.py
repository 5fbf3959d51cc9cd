import json

import pytest

import make
from agentworld.errors import InputError
from agentworld.records.simulator import SimulatorManifest


def test_a_manifest_names_its_schema_and_reads_what_it_wrote(tmp_path):
    manifest, path = make.manifest(), tmp_path / "manifest.json"
    manifest.write(path)
    assert json.loads(path.read_text())["schema"] == "v1"
    assert SimulatorManifest.read(path) == manifest


def test_a_manifest_of_another_schema_is_refused(tmp_path):
    path = tmp_path / "manifest.json"
    make.manifest().write(path)
    path.write_text(path.read_text().replace('"v1"', '"v2"', 1))
    with pytest.raises(InputError, match="schema: Input should be 'v1'"):
        SimulatorManifest.read(path)


CHANGES = {
    "artifact": make.digest("another"),
    "files": {},
    "system_prompt": "another",
    "control_text": "slow down",
    "sampling": {"temperature": 0.5},
    "context_tokens": 2048,
    "engine": {"kind": "vllm", "version": "1", "lock": make.digest("lock")},
    "renderer": "another",
    "parser": "another",
    "retry": {"attempts": 2},
    "confidence_threshold": 0.5,
    "domains": ["terminal", "web"],
}
WITH_ONE_VALUE = {"schema_version", "on_context_overflow"}


@pytest.mark.parametrize("field", sorted(SimulatorManifest.model_fields.keys() - WITH_ONE_VALUE))
def test_every_field_of_a_manifest_is_in_its_digest(field):
    assert make.manifest(**{field: CHANGES[field]}).digest != make.manifest().digest


def test_the_digest_is_over_the_manifest_as_it_is_written():
    written = json.loads(make.manifest().model_dump_json())
    assert SimulatorManifest.model_validate(written).digest == make.manifest().digest
    assert "schema" in written
    assert "schema_version" not in written
