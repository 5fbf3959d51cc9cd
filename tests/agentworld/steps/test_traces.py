"""The step traces, killed during its requests, and the traces that SFT refuses."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agentworld.errors import InputError
from agentworld.records.traces import TraceSet
from agentworld.runner.step import output_of
from agentworld.steps.run import run_by_name
from agentworld.storage.traces import read_traces
from fakes.endpoint import Reply
from make import tracing, training
from make.tracing import requests_to
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.waits

_RUN = "import sys; from agentworld.steps.run import run_by_name; run_by_name(*sys.argv[1:])"


def store_with_traces(folder: Path, url: str, **fields: object) -> training.Training:
    """A store whose recipe has traces by the endpoint at this address."""
    job = training.training(folder)
    recipe = yaml.safe_load(Path(job.recipe).read_text())
    traces = tracing.traces_recipe(url, **fields).model_dump(mode="json")
    Path(job.recipe).write_text(yaml.safe_dump({**recipe, "traces": traces}))
    return job


def echo_key(request):
    """A judge that refuses, and returns the key that it received."""
    return Reply(401, {"error": f"bad {request.headers['authorization']}"})


def test_a_killed_step_requests_only_the_missing_answers(tmp_path):
    with tracing.endpoints() as server:
        run_by_name("traces", *store_with_traces(tmp_path / "whole", server.url))
    num_needed = len(server.requests)
    teacher = tracing.thinks()  # one teacher behind two addresses
    with tracing.endpoints(teacher) as server:
        job = store_with_traces(tmp_path / "killed", server.url)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, "traces", *job],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: len(server.requests) > num_needed // 2 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        assert process.wait(DEADLINE) == -signal.SIGKILL
    num_answers = len(list(Path(job.store, "answers").rglob("*.json")))
    # Requests that were in progress at the kill may be unanswered.
    recipe = tracing.traces_recipe(server.url)
    max_lost = recipe.teacher.concurrency + recipe.judge.concurrency
    assert num_answers >= num_needed // 2 - max_lost
    with tracing.endpoints(teacher) as second:
        text = Path(job.recipe).read_text().replace(server.url, second.url)
        Path(job.recipe).write_text(text)
        folder = run_by_name("traces", *job)
    assert len(second.requests) == num_needed - num_answers
    assert len(read_traces(Path(folder))) == 12


def test_a_finished_step_is_reused_even_with_another_endpoint_address(tmp_path):
    with tracing.endpoints() as server:
        job = store_with_traces(tmp_path / "store", server.url)
        folder = run_by_name("traces", *job)
        num_requests = len(server.requests)
        assert run_by_name("traces", *job) == folder
    assert len(server.requests) == num_requests
    text = Path(job.recipe).read_text().replace(server.url, "http://127.0.0.1:9")
    Path(job.recipe).write_text(text)
    assert run_by_name("traces", *job) == folder


def test_api_keys_are_not_stored_or_printed_even_after_a_failure(tmp_path, monkeypatch, capfd):
    secrets = {"teacher": "sk-rimo-4711", "judge": "sk-rimo-4712"}
    monkeypatch.setenv("TEACHER_KEY", secrets["teacher"])
    (tmp_path / "key").write_text(secrets["judge"])
    sources = {"teacher": "TEACHER_KEY", "judge": str(tmp_path / "key")}
    with tracing.endpoints(judge=echo_key) as server:
        fields = {
            role: {"url": server.url, "model": role, "key_from": source}
            for role, source in sources.items()
        }
        job = store_with_traces(tmp_path / "store", server.url, **fields)
        with pytest.raises(InputError, match=r"bad Bearer \*\*\*") as caught:
            run_by_name("traces", *job)
    outputs = [str(caught.value)]
    with tracing.endpoints() as second:
        text = Path(job.recipe).read_text().replace(server.url, second.url)
        Path(job.recipe).write_text(text)
        outputs.append(run_by_name("traces", *job))
    for role, secret in secrets.items():
        requests = [*requests_to(server, role), *requests_to(second, role)]
        assert {request.headers["authorization"] for request in requests} == {f"Bearer {secret}"}
    files = [path for path in Path(job.store).rglob("*") if path.is_file()]
    assert len(files) > len(second.requests)
    assert [path for path in files if b"sk-rimo" in path.read_bytes()] == []
    assert "sk-rimo" not in "".join([*outputs, *capfd.readouterr()])


def test_traces_without_a_teacher_in_the_recipe_are_refused(tmp_path):
    with pytest.raises(InputError, match="names no teacher; add a section `traces`"):
        run_by_name("traces", *training.training(tmp_path / "store"))


def test_sft_refuses_a_recipe_with_traces_that_are_not_given(tmp_path):
    job = store_with_traces(tmp_path / "store", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="none are given; give --traces"):
        run_by_name("sft", *job)


def test_sft_refuses_traces_of_other_data_or_with_recorded_reasoning(tmp_path):
    with tracing.endpoints() as server:
        job = store_with_traces(tmp_path / "store", server.url)
        traces = run_by_name("traces", *job)
    recipe = yaml.safe_load(Path(job.recipe).read_text())
    recipe["sft"]["reasoning"] = "recorded-state"
    Path(job.store, "two.yaml").write_text(yaml.safe_dump(recipe))
    with pytest.raises(InputError, match="sft.reasoning is recorded-state; set it to off"):
        run_by_name("sft", str(Path(job.store, "two.yaml")), *job[1:], "", traces)
    trace_set = TraceSet.read(Path(traces) / "traces.json")
    trace_set.model_copy(update={"data": output_of(job.data)}).write(Path(traces) / "traces.json")
    with pytest.raises(InputError, match="holds traces of the data .*; give these data"):
        run_by_name("sft", *job, "", traces)
