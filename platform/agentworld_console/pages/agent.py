"""An agent's page: the chain back to its data, and its live validation."""

from starlette.requests import Request

from agentworld.audit.checks.edges import EdgeAudit
from agentworld.audit.checks.validation import validation_of
from agentworld.audit.questions.agent import AgentChain, BaseLink, audit_agent
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, VersionRef
from agentworld.records.report import AgentReport
from agentworld.records.statements.edge import GRADE_MEANINGS
from agentworld_console import rows
from agentworld_console.answer import Answer, Page
from agentworld_console.grade import grade_of, to_disputed
from agentworld_console.scoped_view import ScopedView


def agent(view: ScopedView, request: Request) -> Answer:
    """Its chain, its grade, and its figures; no chain if its run is missing or garbled."""
    ref = VersionRef.parse(request.path_params["agent"])
    agent = view.agent(ref)
    force = request.query_params.get("check") == "1"
    run = view.find_run(agent.run)
    values: dict[str, object] = {"ref": str(ref), "agent": agent, "run": rows.run_link(agent.run)}
    if run is None or run.opening is None:
        problem = "is not in the ledger" if run is None else "is garbled in the ledger"
        missing = to_disputed(f"its run {agent.run} {problem}")
        values |= dict.fromkeys(("chain", "simulator", "data", "report"))
        return Page("agent.html", {**values, "checked": True, "compared": {}, **_grade(missing)})
    checked = force or not view.is_long(run)
    chain = audit_agent(ref, view.sources, verify=checked)
    report = _report(view, agent, chain)
    return Page(
        "agent.html",
        {
            **values,
            "chain": chain,
            "bases": [_visible_base(view, base) for base in chain.bases],
            "simulator": rows.simulator_link(view, chain.simulator),
            "data": rows.dataset_link(chain.data) if chain.data else None,
            "checked": checked,
            **_grade(grade_of(chain)),
            "report": report,
            "compared": report.scores if report else {},
        },
    )


def _visible_base(view: ScopedView, base: BaseLink) -> BaseLink:
    """A base, without name and address if no visible simulator serves that version."""
    if view.is_whole:
        return base
    if base.world_model:
        version = view.library.registry.version(VersionRef.parse(base.world_model))
        is_seen = version.tags.get("artifact") in view.weights
    else:
        is_seen = not (base.address or "").startswith("models:/")
    return base if is_seen else base.model_copy(update={"world_model": None, "address": None})


def _grade(edge: EdgeAudit) -> dict[str, object]:
    return {"grade": edge, "grade_meaning": GRADE_MEANINGS[edge.grade]}


def _report(view: ScopedView, agent: Agent, chain: AgentChain) -> AgentReport | None:
    """The live validation in the chain; null if the chain is broken."""
    try:
        validated = validation_of(agent, chain.simulator, view.sources)
    except EvidenceError:
        return None
    return validated.report if validated else None
