"""Decides whether an alias may move, by comparing an evaluation with its gate. Pure."""

from collections.abc import Sequence, Set

from agentworld.errors import Conflict
from agentworld.records.base import Digest
from agentworld.records.gate import Gate, GateResult
from agentworld.records.report import Report
from agentworld.records.statements.alias import AliasMove


def judge(
    gates: Sequence[Gate], report: Report | None, digests: Set[Digest]
) -> tuple[GateResult, ...]:
    """Each clause of a gate with the report's figure for these subjects."""
    figures = report.figures(digests) if report else {}
    means = {name: estimate.mean for name, estimate in figures.items() if estimate.num}
    return tuple(gate.judge(means) for gate in gates)


def check_may_move(move: AliasMove, report: Report | None, results: Sequence[GateResult]) -> None:
    """Raises Conflict with the first figure that does not meet the gate."""
    failed = next((result for result in results if not result.passed), None)
    if failed is None or move.override:
        return
    if report is None:
        raise Conflict(
            f"the gate asks for {failed.metric} of at least {failed.least:g} and no report is"
            " named; name the report of an evaluation (`--gate-report`), or override with a reason"
            " (`--override`)"
        )
    if failed.value is None:
        raise Conflict(
            f"the report {move.report} has no {failed.metric} of {move.simulator}; name a report"
            " that does, or override with a reason"
        )
    raise Conflict(
        f"{failed.metric} is {failed.value:g} in the report {move.report} and the gate asks for at"
        f" least {failed.least:g}; name a simulator that passes, or override with a reason"
    )


def check_about(move: AliasMove, report: Report, digests: Set[Digest]) -> None:
    """Raises Conflict for an evaluation of another simulator, even with an override."""
    if not report.subjects & digests:
        raise Conflict(
            f"the report {move.report} is not an evaluation of {move.simulator} or of its weights;"
            " name one that is"
        )
