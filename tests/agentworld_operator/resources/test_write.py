import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agentworld.cluster.records.alias import AliasSpec
from agentworld.cluster.records.schedule import ScheduleSpec
from agentworld_operator.resources.crd import crd, schema
from agentworld_operator.resources.kinds import KINDS
from agentworld_operator.resources.write import main, manifests
from machines.kubernetes_types import check_schema

pytestmark = pytest.mark.compute

CRDS = Path(__file__).parents[3] / "charts/agentworld/crds"


def test_the_chart_contains_the_generated_definitions():
    chart_files = {path.name: path.read_text() for path in CRDS.glob("*")}
    assert chart_files == manifests(), "run `make manifests`"


def test_written_definitions_parse_to_the_generated_definitions():
    assert [yaml.safe_load(text) for text in manifests().values()] == list(map(crd, KINDS))


def test_generated_files_have_a_header_and_do_not_depend_on_the_hash_seed(tmp_path):
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "agentworld_operator.resources.write", str(tmp_path)]
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        subprocess.run(command, env=env, check=True)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == manifests()
    assert all(text.startswith("# Generated") for text in manifests().values())


def test_a_definition_file_without_a_record_is_deleted(tmp_path):
    (tmp_path / "old.yaml").write_text("")
    main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == manifests().keys()


def test_each_definition_is_valid():
    for kind in KINDS:
        check_schema(crd(kind))


@pytest.mark.parametrize("spec", [AliasSpec, ScheduleSpec])
def test_every_field_of_an_alias_and_a_schedule_has_a_description(spec):
    for name, field in schema(spec)["properties"].items():
        assert "description" in field, name
