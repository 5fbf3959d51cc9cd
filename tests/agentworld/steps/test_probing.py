import asyncio

import pytest

import make
import make_service
from agentworld.errors import EngineError, SimulatorError
from agentworld.steps.probing import probe

WEIGHTS = make.digest("weights")


def asked(store, answer=make_service.shell):
    """The run of a probe, as the ledger has it then."""
    service = make_service.service(store, answer)
    try:
        asyncio.run(probe(service.client(simulator=service.simulator, attempts=1), WEIGHTS))
    finally:
        (run,) = service.ledger.runs()
    return run


def test_it_takes_one_step_and_leaves_no_run_open(tmp_path):
    run = asked(tmp_path)
    assert (run.opening.purpose, run.num_steps, run.final_weights) == ("evaluation", 1, WEIGHTS)


def test_that_a_model_says_no_observation_is_the_models(tmp_path):
    run = asked(tmp_path, lambda _: "")
    assert (run.num_steps, run.final_weights) == (0, WEIGHTS)


def test_that_nobody_answers_is_not(tmp_path):
    def gone(_):
        raise EngineError("gone", retryable=False)

    with pytest.raises(SimulatorError, match="gone"):
        asked(tmp_path, gone)


def test_an_answer_of_another_simulator_is_refused(tmp_path):
    service = make_service.service(tmp_path)
    with pytest.raises(SimulatorError, match="answers where"):
        asyncio.run(probe(service.client(simulator=make.digest("another")), WEIGHTS))
