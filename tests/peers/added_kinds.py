"""From a counter's environment to a simulator of it, with what another package added.

`python added_kinds.py RECIPE STORE LOG` prints what came of it as JSON.
"""

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path

import httpx

import agentworld
from agentworld.audit.checks.ledger import verify_ledger
from agentworld.audit.export.formats import lines_of
from agentworld.client.simulator import SimulatorClient
from agentworld.operations.ledger import existing_ledger, open_evidence, open_sources
from agentworld.operations.serving import pinned_engine, serve_locally
from agentworld.records.base import now
from agentworld.records.episode import EpisodeOpening
from agentworld.records.report import WorldModelReport
from agentworld.records.run import RunOpening
from agentworld.records.statements.base import statement_kinds
from agentworld.serving.setup import statement_signer_of
from agentworld.steps.run import run_by_name
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.stores import Stores
from agentworld.storage.trajectories import read_collected


def main(recipe: str, store: str, imports: str) -> None:
    imported = read_collected(Path(run_by_name("collect", imports, store)))
    data = run_by_name("prepare", recipe, store, run_by_name("collect", recipe, store))
    stages = [run_by_name("cpt", recipe, store, data)]
    for step in ("sft", "rl"):
        stages.append(run_by_name(step, recipe, store, data, stages[-1]))
    report = run_by_name("evaluate", recipe, store, data, *stages)
    version = run_by_name("register", recipe, store, report, *stages)
    simulator = PinnedSimulator.read(Path(run_by_name("simulate", recipe, store, version)))
    score = WorldModelReport.read(Path(report) / "report.json").stages["rl"]
    answer, metrics = asyncio.run(_asked(simulator, Path(store)))
    result = {
        "installed": agentworld.__file__,
        "imported": imported.num_trajectories + imported.num_held_out_trajectories,
        "domains": list(simulator.manifest.domains),
        "metrics": sorted(score.metrics),
        "tags": sorted(score.by_tag),
        "answer": answer,
        "counted": metrics,
        "statement": _signed(Path(store)),
    }
    print(json.dumps(result))


async def _asked(simulator: PinnedSimulator, store: Path) -> tuple[str, bool]:
    """The service's response by the added protocol, and whether it counts the step."""
    engine = pinned_engine(simulator.manifest)
    digest = simulator.digest
    with serve_locally(simulator.folder, engine, store, store / "logs") as local:
        client = SimulatorClient(local.url, simulator=digest)
        opening = RunOpening(agent="a", starting_weights=digest, simulator=digest)
        run = await client.open_run(opening)
        opened = await client.begin(EpisodeOpening(run=run.id, initial_state="at 3"))
        async with httpx.AsyncClient(base_url=local.url, timeout=60, trust_env=False) as http:
            answer = await http.post(f"/line/{opened.episode}", content="show")
            metrics = await http.get("/metrics")
        await client.close()
        return answer.raise_for_status().text, 'protocol="line"' in metrics.text


def _signed(store: Path) -> dict[str, object]:
    """The output of an export and an audit about a statement of the added kind, before and after
    its copy in the evidence mirror was replaced.
    """
    with closing(existing_ledger(store)) as ledger:
        signer = statement_signer_of(Stores.of(store), ledger)
        for value in (1, 2):
            signer.declare(statement_kinds()["counter-reading"](counter="c", value=value, at=now()))
        older, newer = ledger.attestations.find("counter-reading")
        honest = verify_ledger(ledger, open_evidence(store)).problems
        (store / "mirror" / newer.name).write_bytes(older.envelope)
        exchanged = verify_ledger(ledger, open_evidence(store)).problems
    exported = list(lines_of("in-toto", open_sources(store)))
    return {
        "honest": honest,
        "exchanged": [problem.replace(newer.name, "NAME") for problem in exchanged],
        "exported": sum(row.envelope.decode() in exported for row in (older, newer)),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
