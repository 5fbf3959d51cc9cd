"""Events of a training while it runs, to a file or to a server."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agentworld.engine.process import free_port
from agentworld.errors import InputError, Preempted
from agentworld.operations.lineage_events import lineage_events
from agentworld.records.metrics import ignore_metrics
from make import records

pytestmark = pytest.mark.waits

DATA, PARENT, LAW, TEMPLATE = map(records.digest, ("data", "parent", "law", "template"))
INPUTS = {"data": DATA, "parent": PARENT, "corpus law": LAW, "chat_template": TEMPLATE}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a trained stage."""
    folder = tmp_path / "steps" / "sft" / "0123abc"
    folder.mkdir(parents=True)
    records.checkpoint("sft").write(folder / "checkpoint.json")
    return folder


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the events."""
    monkeypatch.setenv("OPENLINEAGE_URL", f"file://{tmp_path}/events.jsonl")
    return tmp_path / "events.jsonl"


def events_in(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def tags_of(event: dict) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}


def end(folder: Path, error: BaseException) -> None:
    with lineage_events(folder, INPUTS):
        raise error


def test_a_training_sends_start_running_and_complete_events_of_one_run(
    folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr("agentworld.operations.lineage_events.time.monotonic", lambda: now[0])
    with lineage_events(folder, INPUTS) as on_metrics:
        on_metrics(20, {"loss": 3.0})
        now[0] += 61
        on_metrics(40, {"loss": 2.125, "validation_loss/shell": 3.0})
        on_metrics(60, {"loss": 2.0})
    start_event, running_event, last_event = events_in(log)
    assert [event["eventType"] for event in (start_event, running_event, last_event)] == [
        *("START", "RUNNING", "COMPLETE")
    ]
    assert len({event["run"]["runId"] for event in (start_event, running_event, last_event)}) == 1
    for event in (start_event, running_event, last_event):
        assert event["job"]["namespace"] == "agentworld"
        assert event["job"]["name"] == "sft"
        assert {
            data["name"]: data["facets"]["datasetType"]["datasetType"] for data in event["inputs"]
        } == {
            DATA: "FILE",
            PARENT: "MODEL",
            LAW: "FILE",
        }
    assert start_event["eventTime"] <= running_event["eventTime"] <= last_event["eventTime"]
    assert start_event["outputs"] == running_event["outputs"] == []
    assert [data["name"] for data in last_event["outputs"]] == [records.checkpoint("sft").artifact]
    training = {"training": "sft/0123abc"}
    assert tags_of(start_event) == training
    assert tags_of(running_event) == {
        **training,
        "step": "40",
        "loss": "2.125",
        "validation_loss/shell": "3",
    }


@pytest.mark.parametrize(
    ("error", "state", "message"),
    [
        (InputError("the training sft diverged"), "FAIL", "the training sft diverged"),
        (ValueError("odd"), "FAIL", "ValueError: odd"),
        (Preempted("preempted; run it again"), "ABORT", "preempted; run it again"),
        (KeyboardInterrupt(), "ABORT", "KeyboardInterrupt"),
    ],
)
def test_a_failed_or_aborted_training_reports_the_reason_and_no_output(
    folder: Path, log: Path, error: BaseException, state: str, message: str
) -> None:
    with pytest.raises(type(error)):
        end(folder, error)
    _, last_event = events_in(log)
    assert last_event["eventType"] == state
    assert last_event["run"]["facets"]["errorMessage"]["message"] == message
    assert last_event["outputs"] == []


def test_each_attempt_is_a_separate_run(folder: Path, log: Path) -> None:
    for _ in range(2):
        with lineage_events(folder, INPUTS):
            pass
    first, _, second, _ = events_in(log)
    assert first["run"]["runId"] != second["run"]["runId"]
    assert tags_of(first) == tags_of(second)


class _Server(ThreadingHTTPServer):
    received: list[tuple[str, str, dict]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append((self.path, self.headers["Authorization"], body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.received = []
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_gets_events_with_the_api_key(
    folder: Path, server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    with lineage_events(folder, INPUTS):
        pass
    assert [(path, key, body["eventType"]) for path, key, body in server.received] == [
        ("/api/v1/lineage", "Bearer secret", "START"),
        ("/api/v1/lineage", "Bearer secret", "COMPLETE"),
    ]


def test_an_unreachable_server_does_not_end_a_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agentworld.operations.lineage_events._SECONDS_TO_CLOSE", 0.01)
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{free_port()}")
    with lineage_events(folder, INPUTS) as on_metrics:
        on_metrics(20, {"loss": 3.0})
    assert "the last lineage events were not sent to http://127.0.0.1" in caplog.text


def test_each_unsent_event_is_logged_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", f"file://{tmp_path}/no/folder/x.jsonl")
    with lineage_events(folder, INPUTS):
        pass
    assert caplog.text.count("a lineage event was not sent to file://") == 2


@pytest.mark.parametrize("address", ["ftp://host/x", "file://relative", "host:80", "http://"])
def test_an_invalid_address_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", address)
    with pytest.raises(InputError, match=f"OPENLINEAGE_URL is {address}; set it to http://HOST"):
        end(folder, KeyError())


def test_without_an_address_nothing_is_sent(folder: Path) -> None:
    with lineage_events(folder, INPUTS) as on_metrics:
        assert on_metrics is ignore_metrics
