"""A served simulator compared with live shells: through a listening service, without a model."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml

import make.registry
import make.service
from agentworld.domains import sandbox
from agentworld.domains.shell.grammar import CommandClass
from agentworld.errors import EngineError, EnvironmentUnavailable, InputError, SimulatorError
from agentworld.lineage.base import WorldModel
from agentworld.operations.prompt_world import endpoint_at, prompt_world
from agentworld.operations.simulators import set_alias, sheet
from agentworld.recipes import Recipe
from agentworld.records.episode import new_name
from agentworld.records.report import ServedReport
from agentworld.records.run import AgentRun
from agentworld.records.trajectory import Trajectory
from agentworld.runner.run_name import RunName
from agentworld.steps.run import run_by_name
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.trajectories import read_trajectories, write_trajectories
from fakes import endpoint
from make import records
from waiting import wait_for

pytestmark = pytest.mark.waits

NUM_EPISODES = 6
CLASSES = set(get_args(CommandClass))
"""A turn has one of these, besides the tags of every domain."""


@pytest.fixture
def pinned(tmp_path, monkeypatch) -> PinnedSimulator:
    """A simulator in a separate store that is in no registry."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return records.pinned(tmp_path)


@pytest.fixture
def recipe(tmp_path) -> str:
    night = {"num_episodes": NUM_EPISODES, "num_resamples": 100, "concurrency": 2}
    path = tmp_path / "mine.yaml"
    fields = {"name": "mine", "collect": {"domain": "shell"}, "nightly": night}
    path.write_text(yaml.safe_dump(fields))
    return str(path)


def prompt_line(_messages):
    """Answers with a prompt line only."""
    return "[0] ~"


class Night:
    """A listening service, and the step that measures its simulator."""

    def __init__(self, store: Path, recipe: str, simulator: str) -> None:
        self.store = store
        self.words = [recipe, str(store), simulator]
        self.answer = prompt_line

        def current_answer(messages):
            return self.answer(messages)

        self.service = make.service.service(store, current_answer)

    def measured(self, answer=prompt_line, job: str = "monday") -> ServedReport:
        """Measures a simulator with these answers; returns the report."""
        self.answer = answer
        return ServedReport.read(Path(run_by_name("measure", *self.words, job)) / "report.json")

    @property
    def live(self) -> list[Trajectory]:
        """The newest live episodes."""
        files = sorted(self.store.glob("steps/measure/*/live.jsonl"), key=os.path.getmtime)
        return list(read_trajectories(files[-1]))

    @property
    def replayed(self) -> dict[str, bytes]:
        """The stored data of the episodes."""
        files = self.store.glob("steps/measure/*/replayed/0*.json")
        return {file.name: file.read_bytes() for file in files}


@pytest.fixture
def night(pinned, recipe, tmp_path, monkeypatch) -> Iterator[Night]:
    night = Night(tmp_path, recipe, pinned.digest)
    with make.service.listening(night.service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        yield night


def test_a_measurement_attaches_its_scores_and_closes_its_run(night, pinned, tmp_path):
    report = night.measured()
    turns = [turn for episode in night.live for turn in episode.turns]
    num_exact = sum(turn.observation == "[0] ~" for turn in turns)
    score = report.free_running
    assert (report.simulator, report.job) == (pinned.digest, "monday")
    assert (score.exact_match.num, score.exact_match.holes) == (len(turns), 0)
    assert score.exact_match.mean == pytest.approx(num_exact / len(turns))
    assert score.metrics["rule"].mean >= score.exact_match.mean > 0
    assert (score.answers.num, score.answers.missing) == (len(turns), 0)
    assert score.leads.keys() == {"copy", "repeat"}
    assert score.leads["repeat"].metrics["token_f1"].num == len(turns)
    assert sum(value.num for tag, value in score.by_tag.items() if tag in CLASSES) == len(turns)
    assert 0 < report.latency.p50_seconds <= report.latency.p99_seconds
    assert (report.before, report.change, report.drifted) == (None, None, False)
    assert sheet(pinned, tmp_path).reports == (report.digest,)
    (run,) = night.service.ledger.runs()
    assert (run.opening.purpose, run.num_steps) == ("evaluation", len(turns))
    assert run.num_episodes == report.num_episodes == NUM_EPISODES
    assert run.closing is not None


def test_without_a_simulator_argument_the_default_alias_is_measured(night, pinned, tmp_path):
    set_alias("world", pinned.digest, tmp_path, "me")
    recipe, store, _ = night.words
    night.words = [recipe, store, ""]
    assert night.measured().simulator == pinned.digest


def test_without_a_simulator_argument_the_deploy_alias_of_the_recipe_is_measured(
    night, pinned, tmp_path
):
    set_alias("mine", pinned.digest, tmp_path, "me")
    recipe, store, _ = night.words
    settings = yaml.safe_load(Path(recipe).read_text())
    Path(recipe).write_text(yaml.safe_dump(settings | {"deploy": {"alias": "mine"}}))
    night.words = [recipe, store, ""]
    assert night.measured().simulator == pinned.digest


def test_a_simulator_with_correct_observations_scores_1(night):
    def answer_correctly(messages):
        actions = [message["content"] for message in messages if message["role"] == "user"]
        (observation,) = {
            episode.turns[len(actions) - 1].observation
            for episode in night.live
            if [turn.action for turn in episode.turns[: len(actions)]] == actions
            and episode.initial_state in messages[0]["content"]
        }
        return observation

    score = night.measured(answer_correctly).free_running
    assert (score.exact_match.mean, score.metrics["rule"].mean) == (1, 1)


def test_each_job_has_its_own_episodes_and_a_finished_job_is_reused(night):
    first, monday = night.measured(), night.live
    num_asked = len(night.service.engine.requests)
    assert night.measured() == first
    assert len(night.service.engine.requests) == num_asked
    second = night.measured(job="tuesday")
    assert second.trajectories != first.trajectories
    assert not {episode.seed for episode in monday} & {episode.seed for episode in night.live}
    assert all(episode.held_out for episode in (*monday, *night.live))


def test_engine_failures_leave_holes_and_model_failures_count_as_wrong(night):
    def answer_or_fail(messages):
        action = messages[-1]["content"]
        if len(messages) > 4:
            return EngineError("it fell over", kind="refused", retryable=False)
        if action.startswith("cat"):
            return EngineError("no end", kind="cut-off", retryable=False)
        return "[0] ~"

    score = night.measured(answer_or_fail).free_running
    hole_episodes = [e for e in night.live if not any(_is_cat(turn) for turn in e.turns[:2])]
    assert score.exact_match.holes == sum(len(episode.turns) - 2 for episode in hole_episodes)
    assert 0 < score.exact_match.num < sum(len(episode.turns) for episode in night.live)
    assert score.by_tag["cat"].high == 0


SECRET = "AKIAIOSFODNN7EXAMPLQ"
PLACEHOLDER = "[REDACTED:aws-access-key:1]"


@pytest.mark.parametrize(("redact", "text"), [(True, PLACEHOLDER), (False, SECRET)])
def test_live_episodes_are_deduplicated_and_redacted_per_the_recipe(night, redact, text):
    recipe = yaml.safe_load(Path(night.words[0]).read_text())
    Path(night.words[0]).write_text(yaml.safe_dump(recipe | {"prepare": {"redact": redact}}))
    night.measured()
    (live,) = night.store.glob("steps/measure/*/live.jsonl")
    first, *rest = night.live
    turn = first.turns[0].model_copy(update={"action": f"echo {SECRET}", "observation": SECRET})
    first = first.model_copy(update={"turns": (turn, *first.turns[1:])})
    write_trajectories(live, [first, *rest, rest[-1].model_copy(update={"seed": 7})])
    for path in (live.parent / "receipt.json", live.parent / "report.json"):
        path.unlink()
    for path in live.parent.glob("replayed/*.json"):
        path.unlink()
    actions = []

    def echo(messages):
        actions.append(messages[-1]["content"])
        return actions[-1].removeprefix("echo ")

    report = night.measured(echo)
    figures = report.free_running
    assert report.num_episodes == 1 + len(rest)
    assert f"echo {text}" in actions
    assert figures.exact_match.mean == pytest.approx(1 / figures.exact_match.num)


def _is_cat(turn) -> bool:
    return turn.action.startswith("cat")


def test_a_measurement_without_any_answer_fails_and_can_be_repeated(night):
    def fail(_messages):
        return EngineError("it fell over", kind="refused", retryable=False)

    with pytest.raises(SimulatorError, match="answered none of 6 episodes: .*it fell over"):
        night.measured(fail)
    assert night.replayed == {}
    assert night.measured().free_running.exact_match.holes == 0
    assert len(night.replayed) == NUM_EPISODES
    assert all(run.closing for run in night.service.ledger.runs())


def test_without_a_service_the_step_serves_the_pinned_simulator(recipe, tmp_path):
    settings = Recipe(name="r", simulate={"domains": {"shell": "You simulate a Linux shell."}})
    with endpoint.running(lambda _request: "[0] ~") as server:
        simulator = prompt_world(settings, tmp_path, endpoint_at(server.url, "m"))
        folder = run_by_name("measure", recipe, str(tmp_path), str(simulator.folder), "monday")
    report = ServedReport.read(Path(folder) / "report.json")
    assert report.simulator == simulator.digest
    assert report.free_running.exact_match.num == len(server.requests) - 1


def test_an_unreachable_service_raises_an_error_and_leaves_no_report(
    pinned, recipe, tmp_path, monkeypatch
):
    monkeypatch.setenv("AGENTWORLD_SERVICE_URL", "http://127.0.0.1:1")
    with pytest.raises(SimulatorError, match="did not answer"):
        run_by_name("measure", recipe, str(tmp_path), pinned.digest, "monday")
    assert sheet(pinned, tmp_path).reports == ()


def test_without_a_sandbox_nothing_is_measured(pinned, recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.check_sandbox.cache_clear()
    with pytest.raises(EnvironmentUnavailable, match="bubblewrap"):
        run_by_name("measure", recipe, str(tmp_path), pinned.digest, "monday")


def test_a_simulator_without_the_recipes_domain_is_refused(recipe, tmp_path):
    simulator = records.pinned(tmp_path, domains=records.pinned_domains("text"))
    with pytest.raises(InputError, match="has no domain 'shell'"):
        run_by_name("measure", recipe, str(tmp_path), simulator.digest, "monday")


def test_a_simulator_with_a_lower_score_than_at_registration_has_drifted(night, pinned, tmp_path):

    score = records.world_score().model_copy(update={"free_running": records.estimate(0.95)})
    rl = records.checkpoint("rl", artifact=pinned.manifest.artifact)
    stages = {"cpt": records.world_score(), "rl": score}
    before = records.world_report(stages=stages, artifacts={"rl": rl.artifact})
    pinned.attach(before)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    world_model = WorldModel(stages=(rl,), report=before.digest)
    make.registry.registry(tmp_path).register_world_model("shell", world_model, tmp_path / "model")
    report = night.measured()
    assert report.before == before.digest
    assert report.change.mean == pytest.approx(report.free_running.exact_match.mean - 0.95)
    assert report.change.high < 0
    assert report.drifted


_PROGRAM = """
import sys
from agentworld.steps.run import run_by_name
run_by_name("measure", *sys.argv[1:])
"""


def test_a_killed_step_repeats_no_episode_that_was_measured(night):
    def answer_slowly(_messages):
        time.sleep(0.02)
        return "[0] ~"

    night.answer = answer_slowly
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, *night.words, "monday"])
    wait_for(lambda: len(night.replayed) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stored = night.replayed
    assert 2 <= len(stored) < NUM_EPISODES
    requests = []

    def record_request(messages):
        requests.append([message["content"] for message in messages if message["role"] == "user"])
        return "[0] ~"

    report = night.measured(record_request)
    assert report.num_episodes == len(night.replayed) == NUM_EPISODES
    assert {name: night.replayed[name] for name in stored} == stored
    episodes = [[turn.action for turn in episode.turns] for episode in night.live]
    names = [f"{number:05}.json" for number in range(NUM_EPISODES)]
    assert stored.keys() <= set(names)
    missing = [actions for name, actions in zip(names, episodes, strict=True) if name not in stored]
    # A request of the killed step may still be answered; its episode is one of the missing ones.
    assert all(any(actions[: len(texts)] == texts for actions in missing) for texts in requests)
    assert {len(actions) for actions in missing} <= {len(texts) for texts in requests}
    (run,) = night.service.ledger.runs()
    assert run.closing is not None


def test_a_step_killed_before_its_report_repeats_no_engine_request(night):
    report = night.measured()
    (folder,) = night.store.glob("steps/measure/*/receipt.json")
    for name in ("receipt.json", "report.json"):
        (folder.parent / name).unlink()
    num_asked = len(night.service.engine.requests)
    second = night.measured()
    assert second.free_running == report.free_running
    assert len(night.service.engine.requests) == num_asked


def make_killed(night: Night, run: str, *missing: str) -> None:
    """Restores the state of a step that was killed in this run, without these files."""
    (receipt,) = night.store.glob("steps/measure/*/receipt.json")
    for name in ("receipt.json", "report.json", *missing):
        (receipt.parent / name).unlink()
    RunName(run=run).write(receipt.parent / "name.json")


def test_a_step_killed_after_closing_its_run_opens_no_second_run(night):
    night.measured()
    (run,) = night.service.ledger.runs()
    num_asked = len(night.service.engine.requests)
    make_killed(night, run.id)
    night.measured()
    assert night.service.ledger.runs() == [run]
    assert len(night.service.engine.requests) == num_asked
    assert not list(night.store.glob("steps/measure/*/name.json"))


def test_unmeasured_episodes_of_a_closed_run_are_measured_in_a_new_run(night):
    night.measured()
    (run,) = night.service.ledger.runs()
    make_killed(night, run.id, "replayed/00000.json")
    night.measured()
    assert {run.num_episodes for run in night.service.ledger.runs()} == {NUM_EPISODES, 1}
    assert all(run.closing for run in night.service.ledger.runs())


def test_a_step_killed_while_opening_its_run_reuses_that_run(night):
    night.measured()
    (run,) = night.service.ledger.runs()
    name = new_name()

    async def open_again() -> AgentRun:
        client = night.service.client()
        second_run = await client.open_run(run.opening, name)
        await client.close()
        return second_run

    assert asyncio.run(open_again()).id == name
    make_killed(night, name, "replayed/00000.json")
    night.measured()
    assert {run.id for run in night.service.ledger.runs()} == {run.id, name}
    assert all(run.closing for run in night.service.ledger.runs())
