"""Signing who uses which agent for what, in one order for each use of a name."""

from collections.abc import Iterator
from contextlib import suppress

from agentworld.errors import EvidenceError, NotFound
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, now
from agentworld.records.deployment import Deployment, DeploymentMove
from agentworld.records.edge import Edge
from agentworld.signing.deployment import deployments_under, read_deployment, sign_deployment
from agentworld.signing.edge import verify_edge
from agentworld.statements.genesis import LedgerGenesis


class AgentUseSigner(LedgerGenesis):
    """Signs with the keys of a service. Calls block."""

    def deploy(self, name: str, alias: str, move: DeploymentMove) -> Deployment:
        """From now on this agent is in use so; the same again is signed once.

        Raises NotFound for an agent of which no edge was signed, and Conflict where another replica
        was faster.
        """
        edges = self._edges(name, move.artifact, move.run)
        for _, edge in edges:
            fields = {"name": name, "alias": alias, "simulator": edge.simulator}
            proposal = Deployment(number=1, at=now(), **fields, **move.model_dump())
            return self._deployed(proposal)
        raise NotFound(
            f"nobody signed which simulator made {move.artifact} as {name} in run {move.run};"
            " register it anew"
        )

    def end_deployment(self, name: str, alias: str, by: str, reason: str | None) -> Deployment:
        """From now on no agent of this name is in use so; raises NotFound where none ever was."""
        deployments = self._deployments(name, alias)
        if not deployments:
            raise NotFound(f"no {name} was ever in use as {alias!r}; name another one")
        ending = {"by": by, "reason": reason, "at": now(), "ended": True}
        return self._deployed(deployments[-1][1].model_copy(update=ending))

    def _deployed(self, proposal: Deployment) -> Deployment:
        """The newest of its name and alias, if that means the same; else the next one."""
        self.adopt()
        name, alias = proposal.name, proposal.alias
        deployments = self._deployments(name, alias)
        if deployments:
            attestation, newest = deployments[-1]
            # Who signed it may have been killed.
            self._second_store.put(attestation.name, attestation.envelope)
            if newest.means_the_same(proposal):
                return newest
        # After all that the second store holds, also where an old ledger was restored.
        copies = len(self._second_store.names(deployments_under(name, alias)))
        number = 1 + max(copies, *(earlier.number for _, earlier in deployments), 0)
        deployment = proposal.model_copy(update={"number": number})
        signed = sign_deployment(deployment, self._signer())
        self._ledger.attestations.add(signed)
        self._second_store.put(signed.name, signed.envelope)
        return deployment

    def _deployments(self, name: str, alias: str) -> list[tuple[Attestation, Deployment]]:
        """What was signed of a name and an alias, in its order."""
        deployments = []
        for each in self._ledger.attestations.find_under(
            "deployment", deployments_under(name, alias)
        ):
            with suppress(EvidenceError):  # which the audit says
                deployments.append((each, read_deployment(each, self.known_keys())))
        return sorted(deployments, key=lambda pair: pair[1].number)

    def _edges(self, name: str, artifact: Digest, run: str) -> Iterator[tuple[Attestation, Edge]]:
        """What was signed of a run, an artifact and a name, the newest first."""
        for each in reversed(self._ledger.attestations.find("edge", subject=artifact, run=run)):
            with suppress(EvidenceError):
                edge = verify_edge(each.envelope, self.known_keys())
                if (edge.claim.agent, edge.claim.artifact, edge.run) == (name, artifact, run):
                    yield each, edge
