"""The client that judges and teachers share; their own tests cover the use of an answer."""

import threading
from contextlib import closing

import pytest

from agentworld.errors import EngineError, InputError
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.scoring.answers import AnswerStore
from agentworld.scoring.endpoint import EndpointClient
from fakes import endpoint
from fakes.endpoint import Reply
from waiting import DEADLINE

KEY = "sk-hidden-4711"
BUSY = Reply(429, "slow down", (("Retry-After", "0"),))


def client_of(url, **fields):
    """A client with these fields in its recipe, without pauses before retries."""
    options = {name: fields.pop(name) for name in ("answers",) if name in fields}
    recipe = EndpointRecipe(url=url, model="m", **fields)
    return EndpointClient(recipe, "judge", pause_seconds=0.0, **options)


def ask(client, content="ls", **options):
    return client.ask([{"role": "user", "content": content}], temperature=0.0, **options)


def test_a_request_contains_the_model_and_the_fields_of_the_recipe():
    fields = {"max_tokens": None, "max_completion_tokens": 7}
    with (
        endpoint.running(lambda _: "besa") as server,
        closing(client_of(server.url, fields=fields)) as client,
    ):
        assert ask(client, "half-\ud800").text == "besa"
    messages = [{"role": "user", "content": "half-\ufffd"}]
    body = {"model": "m", "messages": messages, "temperature": 0.0, "max_completion_tokens": 7}
    assert server.requests[0].body == body
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("source", ["variable", "file"])
def test_the_key_is_read_from_a_variable_or_a_file_and_sent_in_the_header(
    tmp_path, monkeypatch, source
):
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv("TEACHER_KEY", KEY)
    key_from = "TEACHER_KEY" if source == "variable" else str(tmp_path / "key")
    with (
        endpoint.running(lambda _: "besa") as server,
        closing(client_of(server.url, key_from=key_from)) as client,
    ):
        ask(client)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("text", [None, "", " \n", "two words", "a\nb"])
def test_a_missing_or_invalid_key_is_refused_and_not_printed(tmp_path, text):
    if text is not None:
        (tmp_path / "key").write_text(text)
    client = client_of("http://127.0.0.1:9", key_from=str(tmp_path / "key"))
    refusal = pytest.raises(InputError, match="key_from names .*/key, ")
    with closing(client), refusal as error:
        ask(client)
    assert "two words" not in str(error.value)


def test_a_key_in_a_servers_response_is_redacted_from_the_error(monkeypatch):
    monkeypatch.setenv("TEACHER_KEY", KEY)
    for status, kind in ((401, InputError), (400, EngineError)):
        reply = Reply(status, {"error": f"bad key {KEY}"})
        with (
            endpoint.running(lambda _, reply=reply: reply) as server,
            closing(client_of(server.url, key_from="TEACHER_KEY")) as client,
            pytest.raises(kind, match=r"bad key \*\*\*") as error,
        ):
            ask(client)
        assert KEY not in str(error.value)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_status_401_403_and_404_are_input_errors_without_a_retry(status):
    message = f"the judge at .* status {status}.*; correct the recipe"
    with (
        endpoint.running(lambda _: status) as server,
        closing(client_of(server.url)) as client,
        pytest.raises(InputError, match=message),
    ):
        ask(client)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "kind", "num"),
    [(400, "refused", 1), (Reply(429), "capacity", 10), (BUSY, "capacity", 10), (503, "engine", 3)],
)
def test_other_failures_are_engine_errors_and_temporary_failures_are_retried(reply, kind, num):
    with (
        endpoint.running(lambda _: reply) as server,
        closing(client_of(server.url)) as client,
        pytest.raises(EngineError) as error,
    ):
        ask(client)
    assert (error.value.kind, len(server.requests)) == (kind, num)


def test_a_pause_follows_retry_after_or_doubles_each_time(monkeypatch):
    replies = [Reply(429, "", (("Retry-After", "7"),)), Reply(429), Reply(429), "besa"]
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with endpoint.running(lambda _: replies.pop(0)) as server:
        recipe = EndpointRecipe(url=server.url, model="m")
        with closing(EndpointClient(recipe, "judge", pause_seconds=3.0)) as client:
            assert ask(client).text == "besa"
    assert [pause for pause in pauses if pause >= 1] == [7.0, 6.0, 12.0]


def test_an_unreachable_endpoint_is_reported_without_its_password():
    client = client_of("http://me:hidden@127.0.0.1:9")
    with closing(client), pytest.raises(EngineError, match="me:.*ConnectError") as error:
        ask(client)
    assert "hidden" not in str(error.value)


def test_the_recipe_limits_the_number_of_concurrent_requests():
    active, counts = [], []
    barrier, lock = threading.Barrier(2), threading.Lock()

    def answer(_):
        with lock:
            active.append(1)
            counts.append(len(active))
        barrier.wait(DEADLINE)  # two requests are active, or this raises an error
        with lock:
            active.pop()
        return "besa"

    with (
        endpoint.running(answer) as server,
        closing(client_of(server.url, concurrency=2)) as client,
    ):
        threads = [threading.Thread(target=ask, args=(client,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(server.requests), max(counts)) == (6, 2)


def test_a_stored_answer_is_reused_even_for_another_address(tmp_path):
    for index in range(2):
        with (
            endpoint.running(lambda _, index=index: f"from server {index}") as server,
            closing(client_of(server.url, answers=AnswerStore(tmp_path))) as client,
        ):
            assert ask(client).text == "from server 0"
            assert ask(client, number=0).text == "from server 0"
            assert len(server.requests) == 1 - index


@pytest.mark.parametrize("change", ["content", "number", "temperature", "model", "max_tokens"])
def test_a_changed_request_does_not_reuse_a_stored_answer(tmp_path, change):
    answers = AnswerStore(tmp_path)
    messages = [{"role": "user", "content": "ls"}]
    with endpoint.running(lambda _: "besa") as server:
        for is_changed in (False, True):
            fields = {"model": "n"} if is_changed and change == "model" else {"model": "m"}
            fields |= {"max_tokens": 9} if is_changed and change == "max_tokens" else {}
            recipe = EndpointRecipe(url=server.url, **fields)
            if is_changed and change == "content":
                messages = [{"role": "user", "content": "ls -a"}]
            options = {"temperature": 0.0, "number": 0}
            if is_changed and change in options:
                options[change] = 1
            with closing(EndpointClient(recipe, "judge", answers=answers)) as client:
                client.ask(messages, **options)
    assert len(server.requests) == 2


def test_a_failure_is_not_stored_as_an_answer(tmp_path):
    replies = [400, "besa"]
    with (
        endpoint.running(lambda _: replies.pop(0)) as server,
        closing(client_of(server.url, answers=AnswerStore(tmp_path))) as client,
    ):
        with pytest.raises(EngineError):
            ask(client)
        assert ask(client).text == "besa"


def test_the_path_of_a_new_answer_is_passed_to_the_keep_callback(tmp_path):
    paths = []
    answers = AnswerStore(tmp_path, paths.append)
    with (
        endpoint.running(lambda _: "besa") as server,
        closing(client_of(server.url, answers=answers)) as client,
    ):
        ask(client)
    (path,) = tmp_path.rglob("*.json")
    assert paths == [path]


def test_a_bill_contains_only_its_own_requests_including_stored_answers(tmp_path):
    bills = [[], []]
    with (
        endpoint.running(lambda _: "besa") as server,
        closing(client_of(server.url, answers=AnswerStore(tmp_path))) as client,
    ):
        for bill in bills:
            ask(client.billed_to(bill))
        ask(client, "another")
    assert [[answer.num_tokens for answer in bill] for bill in bills] == [[1], [1]]
    assert len(server.requests) == 2
