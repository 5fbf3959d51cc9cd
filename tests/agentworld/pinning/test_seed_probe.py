"""Engines whose answers depend only on prompt and seed, and engines that break this rule."""

import asyncio
import itertools

import pytest

from agentworld.engine.fake import FakeEngine
from agentworld.engine.server import serve
from agentworld.errors import EngineError, InputError
from agentworld.pinning.seed_probe import probe_seeds, prove_seeds
from agentworld.recipes.serve import EngineRecipe
from make import records

CONCURRENCY = 12
SEEDED = records.manifest(sampling={"temperature": 1.0, "max_tokens": 40, "seed_policy": "seeded"})


class SeededEngine(FakeEngine):
    """An honest engine: an answer depends on the messages and the seed."""

    def __init__(self):
        super().__init__(lambda messages: messages[-1]["content"])

    async def complete(self, request):
        response = await super().complete(request)
        return response._replace(text=f"{request.seed} {response.text}")


class LoadDependentAnswer:
    """Counts active requests; its responses depend on their number."""

    def __init__(self, say):
        self.under_way = 0
        self.say = say

    async def __call__(self, messages):
        self.under_way += 1
        await asyncio.sleep(0)
        num_active = self.under_way
        await asyncio.sleep(0)
        self.under_way -= 1
        return self.say(messages, num_active)


def probe(engine, manifest=SEEDED, **options):
    return asyncio.run(probe_seeds(engine, manifest, CONCURRENCY, **options))


def differ_in_batch(_messages, num_active):
    return "alone" if num_active == 1 else "in a batch"


def cut_off_in_batch(_messages, num_active):
    return "alone" if num_active == 1 else EngineError("too long", kind="cut-off")


def test_an_engine_that_honors_seeds_passes_the_probe():
    result = probe(SeededEngine())
    assert result.difference is None
    assert (result.concurrency, result.num_questions) == (CONCURRENCY, CONCURRENCY)


def test_the_probe_sends_several_prompts_and_seeds_in_three_full_rounds():
    engine = FakeEngine(lambda _messages: "the same")
    probe(engine)
    seeds = {(request.messages[-1]["content"], request.seed) for request in engine.requests}
    assert len(seeds) == CONCURRENCY
    assert 1 < len({prompt for prompt, _ in seeds}) < CONCURRENCY
    assert len(engine.requests) == 3 * CONCURRENCY


@pytest.mark.parametrize("briefly", [False, True])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (differ_in_batch, "asked alone, seed 0 gave 'alone', and asked all at once 'in a batch'"),
        (cut_off_in_batch, "and asked all at once no answer (cut-off)"),
    ],
)
def test_the_probe_detects_answers_that_depend_on_concurrent_requests(answer, message, briefly):
    assert message in probe(FakeEngine(LoadDependentAnswer(answer)), briefly=briefly).difference


def test_the_probe_detects_an_engine_that_ignores_seeds():
    counter = itertools.count()
    assert "gave '0'" in probe(FakeEngine(lambda _messages: str(next(counter)))).difference


def test_the_third_round_detects_answers_that_depend_on_the_request_order():
    """The engine's answer depends on the number of earlier requests with the same prompt."""
    counts: dict[str, int] = {}

    def answer(messages):
        key = messages[-1]["content"]
        counts[key] = counts.get(key, 0) + 1
        return "late" if counts[key] > 2 * CONCURRENCY // 4 else "early"

    assert "in another order 'late'" in probe(FakeEngine(answer)).difference


def test_the_probe_reports_that_cut_off_answers_cannot_be_compared():
    engine = FakeEngine(lambda _messages: EngineError("too long", kind="cut-off"))
    assert "nothing could be compared" in probe(engine).difference


def test_an_engine_failure_during_the_probe_is_raised():
    engine = FakeEngine(lambda _messages: EngineError("gone"))
    with pytest.raises(EngineError, match="gone"):
        probe(engine)


def test_a_manifest_without_seeded_sampling_sends_no_probe_requests():
    engine = SeededEngine()
    prove_seeds(records.manifest(), lambda: engine, CONCURRENCY)
    assert engine.requests == []


def test_a_seeded_manifest_is_refused_if_equal_seeds_give_different_bytes():
    with pytest.raises(InputError, match="equal seeds do not give equal bytes here: asked alone"):
        prove_seeds(SEEDED, lambda: FakeEngine(LoadDependentAnswer(differ_in_batch)), CONCURRENCY)


@pytest.mark.compute
def test_a_real_vllm_passes_the_probe_at_its_full_concurrency(tiny_model, tmp_path):
    recipe, log = EngineRecipe(kind="vllm"), tmp_path / "engine.log"
    server = serve(tiny_model, recipe, sampling=SEEDED.sampling, context_tokens=1024, log=log)
    with server as engine:
        connections = []

        def connect():
            connections.append(engine.connect())
            return connections[-1]

        prove_seeds(SEEDED, connect, engine.concurrency)
        prove_seeds(SEEDED, connect, engine.concurrency, briefly=True)
    assert len(connections) == 2
