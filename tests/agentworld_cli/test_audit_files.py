"""The amount of code that one question runs is bounded, because a newcomer has to read it."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import agentworld
import make.agent
import make.registry
from agentworld.lineage.base import WorldModel
from make import records

pytestmark = pytest.mark.waits

PRODUCT = Path(agentworld.__file__).parents[1]
MOST_FILES = 40


def files_of(work: Callable[[], object]) -> list[str]:
    """Files of the product whose functions ran, without import-time code."""
    files, imports = set[str](), 0

    def on_event(frame: FrameType, event: str, _: object) -> None:
        nonlocal imports
        code = frame.f_code
        if code.co_name == "<module>":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and code.co_flags & inspect.CO_OPTIMIZED:
            files.add(code.co_filename)

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return sorted(name for name in files if Path(name).is_relative_to(PRODUCT))


def test_audit_agent_executes_code_of_few_files(call, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    registry = make.registry.registry(tmp_path)
    agent = make.agent.registered(tmp_path, registry)
    weights = agent.simulator.manifest.artifact
    stages = (records.checkpoint("rl", artifact=weights),)
    world = WorldModel(stages=stages, report=records.digest("report"))
    registry.register_world_model("world", world, tmp_path / "model")
    agent.use()
    agent.validated(agent.simulator.digest)
    outputs: list[str] = []
    audit = f"audit agent shell-agent@1 --store {tmp_path}"
    files = files_of(lambda: outputs.append(call(audit).out))
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\naudit agent runs through {len(files)} files", *files, "")))
    assert all(
        words in outputs[0] for words in ("edge observed", "world@1", "in use as", "live: success")
    )
    assert len(files) <= MOST_FILES
