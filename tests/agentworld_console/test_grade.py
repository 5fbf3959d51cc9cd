import pytest

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.checks.run import RunVerification
from agentworld.audit.questions.agent import AgentChain
from agentworld.records.run import AgentRun, RunOpening
from agentworld_console.grade import grade_of
from make import records

RUN = AgentRun(
    id="r",
    opening=RunOpening(agent="a", starting_weights=records.digest("starting")),
    simulator=records.digest("simulator"),
)
INTACT = RunVerification(subject="run r", grade="verified")
BROKEN = RunVerification(subject="run r", grade="broken", problems=["the log is short"])


def chain(edge, evidence):
    fields = {
        "subject": "a@1",
        "grade": "proven",
        "artifact": records.digest("made"),
        "simulator": RUN.simulator,
    }
    empty_fields = dict.fromkeys(("world_model", "world_model_artifact", "data", "live"))
    return AgentChain(**fields, **empty_fields, run=RUN, stages=(), edge=edge, evidence=evidence)


@pytest.mark.parametrize("evidence", [None, INTACT])
@pytest.mark.parametrize("grade", ["proven", "observed"])
def test_an_agent_has_the_signed_grade(grade, evidence):
    edge = EdgeAudit(subject="a", grade=grade)
    assert grade_of(chain(edge, evidence)) == edge


def test_a_broken_run_record_disputes_the_signed_grade():
    edge = grade_of(chain(EdgeAudit(subject="a", grade="proven"), BROKEN))
    assert (edge.grade, edge.problems) == ("disputed", ("the log is short",))


def test_an_agent_without_a_signed_edge_is_disputed_with_a_reason():
    edge = grade_of(chain(None, None))
    assert (edge.grade, edge.problems) == ("disputed", ("nothing of run r is signed",))
