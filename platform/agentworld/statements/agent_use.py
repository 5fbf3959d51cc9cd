"""Signing who uses which agent for what, in one order for each use of a name."""

from collections.abc import Iterator
from contextlib import suppress

from agentworld.errors import EvidenceError, NotFound
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, now
from agentworld.records.statements.agent_use import AgentUse, AgentUseMove, agent_uses_under
from agentworld.records.statements.edge import Edge
from agentworld.signing.attestation import attest, verify_envelope, verify_row
from agentworld.statements.genesis import LedgerGenesis


class AgentUseSigner(LedgerGenesis):
    """Signs with the keys of a service. Calls block."""

    def start_agent_use(self, name: str, alias: str, move: AgentUseMove) -> AgentUse:
        """From now on this agent is in use so; the same again is signed once.

        Raises NotFound for an agent of which no edge was signed, and Conflict where another replica
        was faster.
        """
        edges = self._edges(name, move.artifact, move.run)
        for _, edge in edges:
            fields = {"name": name, "alias": alias, "simulator": edge.simulator}
            proposal = AgentUse(number=1, at=now(), **fields, **move.model_dump())
            return self._record(proposal)
        raise NotFound(
            f"nobody signed which simulator made {move.artifact} as {name} in run {move.run};"
            " register it anew"
        )

    def end_agent_use(self, name: str, alias: str, by: str, reason: str | None) -> AgentUse:
        """From now on no agent of this name is in use so; raises NotFound where none ever was."""
        agent_uses = self._uses(name, alias)
        if not agent_uses:
            raise NotFound(f"no {name} was ever in use as {alias!r}; name another one")
        ending = {"by": by, "reason": reason, "at": now(), "ended": True}
        return self._record(agent_uses[-1][1].model_copy(update=ending))

    def _record(self, proposal: AgentUse) -> AgentUse:
        """The newest of its name and alias, if that means the same; else the next one."""
        self.ensure_genesis()
        name, alias = proposal.name, proposal.alias
        agent_uses = self._uses(name, alias)
        if agent_uses:
            attestation, newest = agent_uses[-1]
            # Who signed it may have been killed.
            self._mirror.put(attestation.name, attestation.envelope)
            if newest.is_same_use(proposal):
                return newest
        # After all that the evidence mirror holds, also where an old ledger was restored.
        copies = len(self._mirror.names(agent_uses_under(name, alias)))
        number = 1 + max(copies, *(earlier.number for _, earlier in agent_uses), 0)
        agent_use = proposal.model_copy(update={"number": number})
        signed = attest(agent_use, self._signer())
        self._ledger.attestations.add(signed)
        self._mirror.put(signed.name, signed.envelope)
        return agent_use

    def _uses(self, name: str, alias: str) -> list[tuple[Attestation, AgentUse]]:
        """What was signed of a name and an alias, in its order."""
        agent_uses = []
        for attestation in self._ledger.attestations.find_under(
            "agent-use", agent_uses_under(name, alias)
        ):
            with suppress(EvidenceError):  # which the audit says
                agent_use = verify_row(attestation, AgentUse, self.known_keys())
                agent_uses.append((attestation, agent_use))
        return sorted(agent_uses, key=lambda pair: pair[1].number)

    def _edges(self, name: str, artifact: Digest, run: str) -> Iterator[tuple[Attestation, Edge]]:
        """What was signed of a run, an artifact and a name, the newest first."""
        for attestation in reversed(
            self._ledger.attestations.find("edge", subject=artifact, run=run)
        ):
            with suppress(EvidenceError):
                edge = verify_envelope(attestation.envelope, Edge, self.known_keys())
                if (edge.claim.agent, edge.claim.artifact, edge.run) == (name, artifact, run):
                    yield attestation, edge
