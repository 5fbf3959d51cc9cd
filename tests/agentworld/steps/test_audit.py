"""The sources of an agent's last step."""

import pytest

import make.job
from agentworld.errors import InputError
from agentworld.lineage.base import VersionRef
from agentworld.runner.folders import AGENT, TrainedAgent
from agentworld.steps.run import run_by_name
from make import records

_STORES = ("LEDGER_URL", "OBJECTS_URL", "MIRROR_URL")


@pytest.mark.parametrize("num_named", [0, 2])
def test_an_audit_of_a_service_run_requires_the_store_addresses_of_the_service(
    tmp_path, monkeypatch, num_named
):
    folder = records.finished_step(tmp_path, "register_agent", records.digest("trained"))
    version = VersionRef(name="shell-agent", version=1)
    TrainedAgent(version=version, run=make.job.agent_run(), live_steps=0).write(folder / AGENT)
    validation = records.finished_step(tmp_path, "validate", records.digest("report"))
    monkeypatch.setenv("AGENTWORLD_SERVICE_URL", "http://me:secret@worlds:8000")
    for name in _STORES[:num_named]:
        monkeypatch.setenv(f"AGENTWORLD_{name}", str(tmp_path / name))
    missing = ", ".join(f"AGENTWORLD_{name}" for name in _STORES[num_named:])
    with pytest.raises(InputError, match=f"set {missing} to the service's values$") as caught:
        run_by_name("audit", "demo", str(tmp_path), str(folder), str(validation))
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "ledger.db").exists()
