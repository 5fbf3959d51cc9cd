"""Judges, records and signs moves of aliases for a service. Calls block."""

from typing import Any, NamedTuple

from agentworld.errors import Conflict, InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.report import Report, parse_report
from agentworld.records.statements.alias import (
    AgentMove,
    AgentVersion,
    AliasChange,
    AliasKind,
    AliasMove,
    SimulatorUse,
    check_alias,
    split_alias,
)
from agentworld.statements.alias_gate import check_about, check_may_move, judge
from agentworld.statements.signer import StatementSigner

_DRY = "not recorded"


class AliasMoveSigner(NamedTuple):
    """The requested move, and its record in the ledger."""

    ledger: Ledger
    statement_signer: StatementSigner

    def move(
        self,
        alias: str,
        move: AliasMove | AgentMove,
        artifact: Digest | None,
        key: str,
        *,
        dry_run: bool,
    ) -> AliasChange:
        """Points the alias at this target; raises Conflict if its gate refuses it, and NotFound for
        an agent without a signed edge. `artifact` is that of the simulator's weights, if known:
        most evaluations are of weights.
        """
        check_alias(alias, move.kind)
        terms: dict[str, Any] = {"kind": move.kind, "reason": move.reason}
        if isinstance(move, AgentMove):
            simulator = self._simulator_of(alias, move.agent)
            terms["agent"] = move.agent
        else:
            simulator = move.simulator
            terms |= {"request": move.request, **self._judge(move, artifact)}
        if dry_run:
            return AliasChange(alias=alias, simulator=simulator, set_by=move.by, at=_DRY, **terms)
        with self.statement_signer.declaring("alias", alias) as declare:
            arguments: dict[str, Any] = {"key": key, "declare": declare, **terms}
            return self.ledger.aliases.set(alias, simulator, move.by, **arguments)

    def end(
        self,
        alias: str,
        by: str,
        key: str,
        *,
        reason: str | None = None,
        request: str | None = None,
        dry_run: bool = False,
    ) -> AliasChange:
        """Ends the alias; raises NotFound if it does not exist."""
        if dry_run:
            return self.history(alias)[-1].end(by, _DRY, reason, request)
        with self.statement_signer.declaring("alias", alias) as declare:
            arguments: dict[str, Any] = {"key": key, "declare": declare}
            return self.ledger.aliases.end(alias, by, reason=reason, request=request, **arguments)

    def history(self, alias: str | None = None, kind: AliasKind | None = None) -> list[AliasChange]:
        """The history of an alias, or of each of a kind; raises NotFound for an unknown alias."""
        changes = self.ledger.aliases.history(alias, kind)
        if alias is not None and not changes:
            raise NotFound(
                f"there is no alias {alias!r}; set it with `agentworld alias set`, or name another"
            )
        return changes

    def use(self, simulator: Digest) -> SimulatorUse:
        """The aliases of a simulator, and the number of its open runs and episodes."""
        changes, _ = self.ledger.aliases.readable_history("simulator")
        newest = {change.alias: change.meaning for change in changes}
        return SimulatorUse(
            aliases=tuple(
                alias
                for alias, meaning in sorted(newest.items())
                if meaning and simulator in meaning.simulators
            ),
            open_runs=self.ledger.counts.num_open_runs(simulator=simulator),
            open_episodes=self.ledger.counts.num_open_episodes(simulator=simulator),
        )

    def _simulator_of(self, alias: str, agent: AgentVersion) -> Digest:
        """The simulator of the agent's edge: a caller learns only of runs that it can name."""
        name, _ = split_alias(alias)
        for _, edge in self.statement_signer.edges(name, agent.artifact, agent.run):
            return edge.simulator
        raise NotFound(
            f"no signed statement says which simulator made {agent.artifact} as {name} in run"
            f" {agent.run}; register it again"
        )

    def _judge(self, move: AliasMove, artifact: Digest | None) -> dict[str, Any]:
        digests = {move.simulator} | ({artifact} if artifact else set())
        report = self._report(move, digests)
        results = judge(move.gate, report, digests)
        check_may_move(move, report, results)
        failed = any(not result.passed for result in results)
        return {
            "canary": move.canary,
            "report": move.report,
            "gate": results,
            "override": move.override if failed or not move.gate else None,
        }

    def _report(self, move: AliasMove, digests: set[Digest]) -> Report | None:
        if move.report is None:
            return None
        objects = self.ledger.objects
        try:
            if objects is None:
                raise NotFound("no reports are kept")
            report = parse_report(objects.get(move.report))
        except NotFound as error:
            raise Conflict(
                f"the report {move.report} is not in the object store; put it there with"
                " `agentworld simulator attach`, or name another one"
            ) from error
        except InputError as error:
            raise Conflict(f"{move.report} cannot be read: {error}") from error
        check_about(move, report, digests)
        return report
