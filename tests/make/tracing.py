"""A teacher and a judge behind one endpoint, and a store with a data set for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from agentworld.data.tracer import TracePrompt
from agentworld.data.traces import make_traces
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.recipes.traces import TracesRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.records.traces import TraceSet
from agentworld.scoring.answers import AnswerStore
from fakes import endpoint
from fakes.endpoint import Endpoint, Reply, Request
from make import records
from make.pools import write_pool

Say = Callable[[Request], str | int | Reply]

TEACHER, JUDGE = "teacher", "judge"


def verdict(score: int) -> str:
    """A judge's response with the same score in each dimension."""
    names = ("format", "factuality", "consistency", "realism", "quality")
    scores = ", ".join(f'"{name}": {score}' for name in names)
    return f'```json\n{{"scores": {{{scores}}}}}\n```'


def preference(name: str) -> str:
    return f'{{"better": "{name}"}}'


def question_of(request: Request) -> str:
    """The last message of a request."""
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


def asks_about(request: Request, prompt: TracePrompt) -> bool:
    """Whether a request asks a judge about this prompt."""
    action = prompt.sample.turns[prompt.turn].action
    return f"## Action\n```\n{action}\n```" in question_of(request)


def is_comparison(request: Request) -> bool:
    return "## Prediction A" in question_of(request)


def thinks() -> Say:
    """A teacher whose rollouts of a prompt are numbered from 0."""
    numbers: defaultdict[str, Iterator[int]] = defaultdict(count)

    def say(request: Request) -> str:
        number = next(numbers[str(request.body["messages"])])
        return f"<think>so {number}</think>shows {number}"

    return say


def approves(request: Request) -> str:
    """A judge that gives full scores and has no preference."""
    return preference("tie") if is_comparison(request) else verdict(5)


@contextmanager
def endpoints(teacher: Say | None = None, judge: Say = approves) -> Iterator[Endpoint]:
    """One server for both models."""
    responders = {TEACHER: teacher or thinks(), JUDGE: judge}
    with endpoint.running(
        lambda request: responders[str(request.body["model"])](request)
    ) as server:
        yield server


def requests_to(server: Endpoint, model: str) -> list[Request]:
    return [item for item in server.requests if item.body["model"] == model]


def prepared(store: Path, samples: Sequence[Sample]) -> str:
    """The folder of a data set with these samples for SFT."""
    store.mkdir()
    data = records.finished_step(store, "prepare", records.digest("data"))
    sft = write_pool(data / "sft.parquet", samples)
    records.dataset(sft=sft).write(data / "dataset.json")
    return str(data)


def traces_recipe(url: str, **fields: object) -> TracesRecipe:
    """A recipe with these endpoints."""
    shared = {"url": url, "timeout_seconds": 30}
    teacher = EndpointRecipe.model_validate({**shared, "model": TEACHER})
    judge = EndpointRecipe.model_validate({**shared, "model": JUDGE})
    return TracesRecipe.model_validate({"teacher": teacher, "judge": judge, **fields})


def traces_of(folder: Path, data: str, recipe: TracesRecipe, out: str = "out") -> TraceSet:
    """Writes traces into a folder, with the cached responses beside them."""
    answers = AnswerStore(folder / "answers")
    target = folder / out
    target.mkdir(exist_ok=True)
    return make_traces(
        recipe, Path(data), target, ignore_progress, answers=answers, pause_seconds=0.0
    )
