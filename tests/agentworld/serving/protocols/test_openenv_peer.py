"""Unmodified programs of other projects against the service in a separate process: old and current
clients of OpenEnv, its validation, TRL's GRPO with its client, and verifiers.
"""

import asyncio
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.ledger import Ledger
from agentworld.pinning.manifest import pin_endpoint
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.run import AgentRun, RunOpening
from agentworld.records.simulator import Endpoint
from agentworld.serving.local import serve_simulator
from agentworld.storage.stores import Stores
from fakes import endpoint
from make import records
from make.peers import ROOT, run_peer

ENGINE = EngineRecipe(kind="transformers-serve")
OPENING = RunOpening(agent="a", starting_weights=records.digest("starting"))
TASK = records.task(turn_limit=8)


def shell(action: str) -> str | int:
    """Simulates one file and `echo`; the engine fails on `break`."""
    if action == "break":
        return 500
    output = "besa" if action == "cat rimo.txt" else action.removeprefix("echo ")
    return "[0] ~" if output == action else f"{output}\n[0] ~"


class OpenRun(NamedTuple):
    id: str
    url: str
    ledger: Ledger


@contextmanager
def open_run(folder: Path, answer: Callable[[str], str | int] = shell) -> Iterator[OpenRun]:
    """A run of a service whose engine gives this response."""
    stores, manifest = Stores.of(folder), folder / "manifest.json"
    recipe = SimulateRecipe(domains={"shell": "You simulate a shell."})
    with endpoint.running(lambda query: answer(query.body["messages"][-1]["content"])) as engine:
        pin_endpoint(Endpoint(url=engine.url, model="m"), recipe).write(manifest)
        with serve_simulator(manifest, folder, ENGINE, stores, folder / "logs") as local:
            run, ledger = asyncio.run(start_run(local.url)), Ledger(stores.ledger_url)
            yield OpenRun(run.id, f"{local.url}/runs/{run.id}", ledger)
            ledger.close()


async def start_run(url: str) -> AgentRun:
    client = SimulatorClient(url)
    run = await client.open_run(OPENING)
    await client.close()
    return run


def step(action: str) -> tuple[str, object]:
    return "step", {"action": {"action": action}}


@pytest.mark.waits
@pytest.mark.parametrize(
    ("environment", "style"),
    [
        ("openenv", "async"),
        ("openenv", "sync"),
        ("openenv-0.10", "async"),
        ("openenv-0.10", "sync"),
    ],
)
def test_the_stock_openenv_client_plays_episodes_and_reports_failures(tmp_path, environment, style):
    calls = [
        *(step("ls"), ("reset", {"turn_limit": 8}), step("echo kolu")),
        *(step("break"), step("echo tane"), ("state", {})),
        *(("reset", {"seed": 7}), ("reset", {"task": TASK.model_dump(mode="json")})),
        *(step("echo besa"), step("ls")),
    ]
    with open_run(tmp_path) as run:
        output = run_peer(environment, "peers.stock_client", style, run.url, json.dumps(calls))
        first, second = run.ledger.episodes(run.id)
    early, start, answer, failure, retry, state, refusal, opening, final, late = json.loads(output)
    assert [text.rpartition("(code: ")[2] for text in (early, failure, refusal, late)] == [
        *("VALIDATION_ERROR)", "EXECUTION_ERROR)", "VALIDATION_ERROR)", "EXECUTION_ERROR)")
    ]
    assert early.startswith("RuntimeError: Server error: no episode is open on this connection")
    assert start["observation"]["simulator"] == first.simulator
    assert answer["observation"]["text"] == "kolu\n[0] ~"
    assert (retry["observation"]["step"], retry["reward"], retry["done"]) == (2, None, False)
    assert (state["episode_id"], state["step_count"]) == (first.id, 2)
    assert opening["observation"]["text"] == TASK.instruction
    assert (final["reward"], final["done"]) == (1.0, True)
    assert [len(first.steps), len(second.steps)] == [2, 1]


@pytest.mark.waits
@pytest.mark.parametrize("environment", ["openenv", "openenv-0.10"])
def test_the_first_example_of_the_guide_plays_one_episode(tmp_path, environment):
    with open_run(tmp_path) as run:
        output = run_peer(environment, "peers.first_episode", run.url)
        (episode,) = run.ledger.episodes(run.id)
    assert output == "kolu > rimo.txt\n[0] ~ None False\nbesa\n[0] ~ None False\n2\n"
    assert len(episode.steps) == 2


@pytest.mark.waits
@pytest.mark.parametrize("environment", ["openenv", "openenv-0.10"])
def test_openenvs_tool_client_lists_and_calls_tools_in_one_episode(tmp_path, environment):
    with open_run(tmp_path) as run:
        output = run_peer(environment, "peers.tool_client", run.url)
        (episode,) = run.ledger.episodes(run.id)
    assert output == "['bash']\nkolu > rimo.txt\n[0] ~\nbesa\n[0] ~ None False\n2\n"
    assert len(episode.steps) == 2


@pytest.mark.waits
def test_openenvs_validation_passes_at_the_address_of_a_run(tmp_path):
    with open_run(tmp_path) as run:
        output = run_peer("openenv-0.10", "openenv.cli", "validate", "--url", run.url, "--json")
    report = json.loads(output)
    assert report["passed"]
    assert report["summary"]["passed_count"] == report["summary"]["total_count"] == 6
    assert report["mode"] == "simulation"


@pytest.mark.waits
def test_verifiers_plays_an_episode_to_its_end_and_sums_up_its_reward(tmp_path):
    reset, lines = {"task": TASK.model_dump(mode="json")}, ["cat rimo.txt", "echo besa"]
    with open_run(tmp_path) as run:
        arguments = json.dumps(reset), json.dumps(lines)
        report = json.loads(run_peer("verifiers", "peers.verifiers_player", run.url, *arguments))
        (episode,) = run.ledger.episodes(run.id)
    assert [step.action for step in episode.steps] == lines
    observations = [frame["observation"]["text"] for frame in report["heard"]]
    assert observations == [TASK.instruction, "besa\n[0] ~"]
    assert report["rewards"] == {"openenv_reward": 1.0}


def flush_left(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def test_the_examples_of_the_guide_are_part_of_the_tested_programs():
    guide = (ROOT / "docs/guides/protocols.md").read_text()
    (section,) = re.findall(r"^## OpenEnv\n(.*?)(?=^## |\Z)", guide, re.M | re.S)
    examples = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    programs = [flush_left(path.read_text()) for path in (ROOT / "tests/peers").glob("*.py")]
    assert len(examples) == 4
    for example in map(flush_left, examples):
        assert [program for program in programs if example in program], example


class Rollout(NamedTuple):
    """A rollout in TRL's form."""

    answered: tuple[tuple[str, str], ...]
    """Actions and observations."""
    failed: bool
    """A step of it got no answer."""
    reward: float | None
    advantage: float


def read_rollout(row: dict) -> Rollout:
    """A row of TRL's table of completions."""
    messages = row["completion"]
    calls = [
        call["function"]["arguments"]
        for message in messages
        for call in message.get("tool_calls") or ()
    ]
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    # TRL drops an answer that no longer fits; the comparison with the ledger would then fail.
    steps = [(call["command"], text) for call, text in zip(calls, texts, strict=False)]
    answered_steps = tuple(pair for pair in steps if not pair[1].startswith("{'error'"))
    has_failed = any("Server error" in text for text in texts)
    return Rollout(answered_steps, has_failed, row["ShellEnv"], row["advantage"])


@pytest.mark.waits
def test_trl_grpo_rollouts_match_the_ledger_and_failed_rollouts_have_no_reward(tmp_path):
    calls, (tasks, out) = itertools.count(1), (tmp_path / "tasks.json", tmp_path / "trl")
    tasks.write_text(json.dumps([TASK.model_dump(mode="json")] * 4))
    with open_run(tmp_path, lambda action: 500 if next(calls) % 10 == 0 else shell(action)) as run:
        run_peer("openenv", "peers.grpo", run.url, tasks, out, TRL_EXPERIMENTAL_SILENCE="1")
        episodes = list(run.ledger.episodes(run.id))
    state = json.loads((out / "state.json").read_text())
    assert state["global_step"] == 4
    assert any(entry.get("grad_norm") for entry in state["log_history"])

    rollouts = [read_rollout(row) for row in pq.read_table(out / "completions").to_pylist()]
    stored = [tuple((s.action, s.observation) for s in e.steps) for e in episodes]
    assert all(episode.intact for episode in episodes)
    assert Counter(rollout.answered for rollout in rollouts) == Counter(stored)
    assert {rollout.failed for rollout in rollouts} == {False, True}
    for rollout in rollouts:
        assert (rollout.reward is None) == rollout.failed
        assert not rollout.failed or rollout.advantage == 0.0
        assert rollout.failed or rollout.reward == float(
            ("echo besa", "besa\n[0] ~") in rollout.answered
        )
    assert {rollout.reward for rollout in rollouts if not rollout.failed} == {0.0, 1.0}
    for group in (rollouts[start : start + 4] for start in range(0, len(rollouts), 4)):
        # Advantages are relative to the mean of rewarded rollouts; a failure as 0 would move it.
        assert sum(rollout.advantage for rollout in group) == pytest.approx(0, abs=1e-4)
