import pytest

from agentworld_operator.policy.queue import choose_queue
from fakes.kueue import QUEUE, check_update


def deployment(queue, ready=0):
    labels = {QUEUE: queue} if queue else {}
    return {"metadata": {"name": "engine-1", "labels": labels}, "status": {"readyReplicas": ready}}


def test_a_new_engine_is_created_in_the_wanted_queue():
    assert choose_queue("a", None) == ("a", None)
    assert choose_queue(None, None) == (None, None)


@pytest.mark.parametrize("ready", [0, 1])
@pytest.mark.parametrize("wanted_queue", [None, "a", "b"])
@pytest.mark.parametrize("current_queue", [None, "a"])
def test_kueue_accepts_every_choice_and_an_unwanted_queue_has_a_problem(
    current_queue, wanted_queue, ready
):
    before = deployment(current_queue, ready)
    queue, problem = choose_queue(wanted_queue, before)
    check_update(before, deployment(queue, ready))
    assert (problem is None) == (queue == wanted_queue)


def test_a_queue_changes_once_no_replica_is_ready():
    assert choose_queue("b", deployment("a", ready=1)).queue == "a"
    assert choose_queue("b", deployment("a")) == ("b", None)
    assert choose_queue("b", deployment(None)) == ("b", None)


def test_a_kept_queue_is_reported_with_a_remedy():
    ready, removed = (
        choose_queue(*arguments).problem
        for arguments in [("b", deployment("a", 1)), (None, deployment("a"))]
    )
    assert ready.reason == removed.reason == "QueueKept"
    assert "from a to b once spec.serving.suspend" in ready.message
    assert "delete the Deployment engine-1" in removed.message
