"""The step evaluate, with fake engines in the place of served models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from agentworld.engine.fake import FakeEngine
from agentworld.errors import InputError
from agentworld.evaluate.rubric import JUDGE_METRICS
from agentworld.records.message import Message
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import REPORT, model_of
from agentworld.steps.evaluate import BASELINES
from agentworld.steps.run import run_by_name
from fakes.endpoint import Request
from make import records, tracing, training
from make.pools import write_pool
from make.tracing import verdict

pytestmark = pytest.mark.waits  # this step imports torch and MLflow


class Evaluation(NamedTuple):
    """A store with a data set and two stages, and the requests to the stages."""

    words: training.Training
    stages: tuple[str, str]
    served: list[str]
    """The logs of the models that were served."""

    def run(self, url: str | None) -> Path:
        """The folder of the step, with a judge at this address or without one."""
        recipe = yaml.safe_load(Path(self.words.recipe).read_text())
        judge = {"url": url, "model": tracing.JUDGE, "concurrency": 2} if url else None
        evaluate = {"num_episodes": 6, "num_free_running": 1, "num_resamples": 50}
        recipe["evaluate"] = {**evaluate, **({"judge": judge} if judge else {})}
        Path(self.words.recipe).write_text(yaml.safe_dump(recipe))
        return Path(run_by_name("evaluate", *self.words, "", *self.stages))


class _ServedModel(NamedTuple):
    log: Path

    def connect(self) -> FakeEngine:
        """The model rl returns the true observation, and the model sft only the prompt line."""
        truths = {
            turn.action: turn.observation for sample in training.samples() for turn in sample.turns
        }

        def answer(messages: Sequence[Message]) -> str:
            return truths[messages[-1]["content"]] if self.log.stem == "rl" else "[0] ~"

        return FakeEngine(answer)


@pytest.fixture
def evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    arguments = training.training(tmp_path / "store")
    data = Path(arguments.data)
    pools = {
        name: write_pool(data / f"{name}.parquet", training.samples())
        for name in ("cpt", "sft", "rl", "held_out")
    }
    records.dataset(**pools).write(data / "dataset.json")
    folders = [records.trained_step(Path(arguments.store), stage) for stage in ("sft", "rl")]
    for folder in folders:
        model_of(folder).mkdir()
        (model_of(folder) / "config.json").write_text('{"max_position_embeddings": 1024}')
    log_names: list[str] = []

    @contextmanager
    def serve(*_: object, log: Path, **__: object) -> Iterator[_ServedModel]:
        log_names.append(log.stem)
        yield _ServedModel(log)

    monkeypatch.setattr("agentworld.steps.evaluate.serve", serve)
    return Evaluation(arguments, (str(folders[0]), str(folders[1])), log_names)


def by_length(request: Request) -> str:
    """A verdict that depends only on the question."""
    return verdict(1 + len(tracing.question_of(request)) % 5)


def questions(requests: list[Request]) -> list[str]:
    return [tracing.question_of(request) for request in requests]


def test_the_report_has_judge_scores_for_every_stage_and_baseline(
    evaluation: Evaluation,
) -> None:
    with tracing.endpoints(judge=by_length) as server:
        folder = evaluation.run(server.url)
    report = WorldModelReport.read(folder / REPORT)
    assert report.baselines.keys() == BASELINES.keys()
    for score in (*report.stages.values(), *report.baselines.values()):
        assert set(JUDGE_METRICS) <= score.metrics.keys()
        assert 0 <= score.metrics["judge"].low <= score.metrics["judge"].high <= 1
    rl = report.stages["rl"]
    assert {name for name in rl.leads if "judge" in rl.leads[name].metrics} == set(BASELINES)
    assert rl.gain
    assert rl.gain.over == "sft"
    assert "judge_factuality" in rl.gain.metrics
    assert report.judge
    assert (report.judge.holes, report.judge.models) == (0, (tracing.JUDGE,))
    # Two predictors with the same observation for a turn share, and pay for, one judge question.
    assert report.judge.num > report.judge.usage.num_answers == len(server.requests)
    assert len(set(questions(server.requests))) == len(server.requests)


def test_a_resumed_evaluation_repeats_no_judge_question_and_serves_no_model_again(
    evaluation: Evaluation,
) -> None:
    counter, first_questions = count(), list[str]()

    def answer_20(request: Request) -> str | int:
        if next(counter) >= 20:
            return 401
        first_questions.append(tracing.question_of(request))
        return by_length(request)

    with tracing.endpoints(judge=answer_20) as first, pytest.raises(InputError, match="status 401"):
        evaluation.run(first.url)
    # A bucket may have a score, and not yet the guesses that it scores.
    (guesses,) = Path(evaluation.words.store).rglob("guesses/copy.json")
    guesses.unlink()
    with tracing.endpoints(judge=by_length) as second:
        folder = evaluation.run(second.url)
    all_questions = [*first_questions, *questions(second.requests)]
    assert len(set(all_questions)) == len(all_questions) > 2 * len(first_questions) == 40
    assert evaluation.served == ["sft", "rl"]
    report = WorldModelReport.read(folder / REPORT)
    assert report.judge
    assert report.judge.usage.num_answers == len(all_questions)  # also those of the first run


def test_without_a_judge_the_report_has_no_judge_scores(evaluation: Evaluation) -> None:
    folder = evaluation.run(None)
    fields = json.loads((folder / REPORT).read_text())
    assert "judge" not in fields
    assert not [name for name in fields["stages"]["rl"]["metrics"] if name.startswith("judge")]
    assert not (folder / "guesses").exists()
