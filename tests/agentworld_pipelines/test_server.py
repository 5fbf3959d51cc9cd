"""Pipelines on a server: uploaded once, run once, followed and stopped, and the errors."""

import threading

import kfp
import pytest

from agentworld.errors import AccessError, Conflict, InputError, NotFound, PipelineError
from agentworld.records.base import digest_file
from agentworld_pipelines.connection import Connection
from agentworld_pipelines.server import follow, newest_runs, run_of, start, stop_run, upload
from agentworld_pipelines.settings import ServerSettings

pytestmark = pytest.mark.waits

ARGUMENTS = {"recipe": "demo", "store": "/store"}


@pytest.fixture
def version(at, compiled):
    return upload(at, compiled)


def test_a_pipeline_is_uploaded_once_and_named_by_its_digest(at, server, compiled):
    version = upload(at, compiled)
    assert upload(at, compiled) == version
    assert (version.pipeline, version.compiled) == ("one-step", digest_file(compiled))
    (uploaded_version,) = server.versions.values()
    assert uploaded_version.name == version.compiled.replace(":", "-")


def test_other_bytes_are_another_version_of_the_same_pipeline(at, server, compiled, tmp_path):
    path = tmp_path / "pipeline.yaml"
    path.write_text(compiled.read_text() + "# newer\n")
    first, second = upload(at, compiled), upload(at, path)
    assert (first.pipeline_id, first.id != second.id) == (second.pipeline_id, True)
    assert len(server.versions) == 2


@pytest.mark.parametrize("text", ["", "a: 1", "- 1", "{", "pipelineInfo: {name: x}\nroot: {}\n"])
def test_a_file_that_is_no_pipeline_is_refused(at, tmp_path, text):
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        upload(at, path)


def test_an_active_run_with_the_same_arguments_is_not_started_again(at, server, version):
    run = start(at, version, ARGUMENTS)
    assert (run.state, run.finished, run.schedule_id) == ("PENDING", None, None)
    assert run.url == f"{server.url}/#/runs/details/{run.id}"
    server.put(run.id, "RUNNING")
    assert start(at, version, ARGUMENTS).id == run.id
    other_run = start(at, version, {**ARGUMENTS, "recipe": "smoke"})
    assert other_run.id != run.id
    server.put(run.id, "SUCCEEDED")
    assert start(at, version, ARGUMENTS).id not in (run.id, other_run.id)
    assert len(newest_runs(at)) == 3


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_start_gives_one_run(at, server, version, loss, number):
    num_requests = len(server.requests)
    setattr(server, loss, lambda index: index == num_requests + number)
    with pytest.raises(PipelineError) as error:
        start(at, version, ARGUMENTS)
    assert error.value.retryable
    start(at, version, ARGUMENTS)
    assert len(server.runs) == 1


def test_runs_are_listed_from_the_newest_to_the_oldest(at, server, version):
    ids = [start(at, version, {**ARGUMENTS, "store": f"/{name}"}).id for name in "abc"]
    server.put(ids[0], "FAILED", "the disk is full")
    runs = newest_runs(at)
    assert [run.id for run in runs] == ids[::-1]
    assert runs[-1].finished > runs[-1].started
    assert runs[-1].failure == "the disk is full"


def test_a_run_is_followed_to_its_end(at, server, version):
    run = start(at, version, ARGUMENTS)
    server.course = ["PENDING", "RUNNING", "RUNNING", "SUCCEEDED"]
    states = [update.state for update in follow(at, run.id)]
    assert states == ["PENDING", "RUNNING", "SUCCEEDED"]


def test_following_a_run_waits_during_an_outage_of_the_server(at, server, version):
    run = start(at, version, ARGUMENTS)
    num_requests = len(server.requests)
    server.before = lambda index: index < num_requests + 2
    server.course = ["SUCCEEDED"]
    assert [update.state for update in follow(at, run.id)] == ["SUCCEEDED"]


def test_following_a_missing_run_is_an_error(at):
    with pytest.raises(NotFound, match="Run gone not found"):
        list(follow(at, "gone"))


def test_a_run_is_stopped_once(at, server, version):
    run = start(at, version, ARGUMENTS)
    assert stop_run(at, run.id).state == stop_run(at, run.id).state == "CANCELING"
    assert server.requests.count(f"POST /runs/{run.id}:terminate") == 1
    assert start(at, version, ARGUMENTS).id != run.id
    server.put(run.id, "CANCELED")
    with pytest.raises(Conflict, match="has ended already"):
        stop_run(at, run.id)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"recipe": "demo"}, "parameter store is not optional"),
        ({**ARGUMENTS, "seed": "1"}, "not required by pipeline: seed"),
        ({**ARGUMENTS, "recipe": 1}, "requires type string"),
    ],
)
def test_invalid_arguments_are_refused_with_the_servers_message(
    at, server, version, arguments, words
):
    with pytest.raises(InputError, match=words):
        start(at, version, arguments)
    assert server.runs == {}


@pytest.fixture
def token(server, tmp_path):
    server.token = "a.b-c"
    path = tmp_path / "token"
    path.write_text("a.b-c\n")
    return path


def test_the_token_is_sent_and_read_again_when_the_file_changes(server, token):
    at = Connection(ServerSettings(url=server.url, token_file=token))
    assert newest_runs(at) == []
    server.token = "d"
    token.write_text("d")
    assert newest_runs(at) == []
    token.unlink()
    with pytest.raises(InputError, match="cannot read the server's token"):
        newest_runs(at)


@pytest.mark.usefixtures("token")
def test_the_error_without_a_token_names_the_variable_to_set(at):
    with pytest.raises(AccessError, match="AGENTWORLD_KFP_TOKEN_FILE"):
        newest_runs(at)


@pytest.mark.parametrize("text", ["", "two words", "two\nlines", "b\xe4d", "\x00"])
def test_an_invalid_token_is_neither_sent_nor_shown(server, tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(InputError, match="has no token") as error:
        Connection(ServerSettings(url=server.url, token_file=path))
    assert not text or text not in str(error.value)
    assert server.requests == []


def test_a_missing_token_file_is_named(server, tmp_path):
    with pytest.raises(InputError, match="gone"):
        Connection(ServerSettings(url=server.url, token_file=tmp_path / "gone"))


@pytest.mark.parametrize("page", ["<html>Log in</html>", "", "[]", "null", '"x"', "\xff"])
def test_a_login_page_is_an_error_and_not_an_empty_list(at, server, page):
    server.says = page
    with pytest.raises(PipelineError, match="does not answer as a Kubeflow Pipelines server"):
        newest_runs(at)


def test_json_of_another_service_is_an_error(at, server, compiled):
    server.says = "{}"
    with pytest.raises(PipelineError, match="does not answer as a Kubeflow Pipelines server"):
        upload(at, compiled)
    with pytest.raises(PipelineError, match="does not answer as a Kubeflow Pipelines server"):
        run_of(at, "1")


def test_an_unreachable_server_is_a_retryable_error():
    at = Connection(ServerSettings(url="http://127.0.0.1:1"))
    with pytest.raises(PipelineError, match="cannot be reached") as error:
        newest_runs(at)
    assert error.value.retryable


@pytest.mark.parametrize(("url", "words"), [("", "no Kubeflow"), ("host:80", "is not a server")])
def test_a_missing_or_invalid_server_address_is_refused(url, words):
    with pytest.raises(InputError, match=words):
        Connection(ServerSettings(url=url))


def test_a_multi_user_server_requires_a_namespace(at, server, compiled):
    server.is_multi_user = True
    with pytest.raises(InputError, match="a namespace is required"):
        newest_runs(at)
    connection = Connection(ServerSettings(url=server.url, namespace="team-a"))
    run = start(connection, upload(connection, compiled), ARGUMENTS)
    assert [listed_run.id for listed_run in newest_runs(connection)] == [run.id]


def test_the_users_kfp_context_stays_unchanged_and_nothing_is_printed(
    server, compiled, tmp_path, monkeypatch, capfd, recwarn
):
    context = tmp_path / "kfp/context.json"
    context.parent.mkdir()
    context.write_text("broken")
    monkeypatch.setattr(kfp.Client, "_LOCAL_KFP_CONTEXT", str(context))
    server.is_multi_user = True
    num_threads = threading.active_count()
    at = Connection(ServerSettings(url=server.url, namespace="team-a"))
    start(at, upload(at, compiled), ARGUMENTS)
    assert threading.active_count() < num_threads + 10
    assert context.read_text() == "broken"
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
