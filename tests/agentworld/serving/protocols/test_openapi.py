"""The service against its own OpenAPI document, with Schemathesis: every response to valid or
invalid requests is a declared one. No route is named here.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import make.many
import make.service
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.validation import Validation
from agentworld.signing.envelope import attest
from agentworld.signing.keys import STEP_KEYS, ensure_signer
from make import records
from waiting import DEADLINE, JOB_DEADLINE

PEERS = Path(__file__).parents[3] / "peers"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
ARTIFACT = records.digest("made")
EXAMPLES = 30  # for each operation, and as many walks along links
NUM_RUNS = 80  # runs with an episode; the requests close many of them


class Examination(NamedTuple):
    """The results."""

    said: str
    status: int
    unanswered: set[str]
    """The operations that were never answered with success."""


CATALOGUE = make.many.Catalogue()
SERVICES = {
    "one": (lambda folder: make.service.service(folder).app, make.service.SIMULATOR),
    "many": (lambda folder: make.many.app(folder, CATALOGUE), make.many.SECOND.digest),
}
"""Services, and a simulator that is known there."""


@pytest.fixture(scope="module", params=[pytest.param("one", marks=pytest.mark.long), "many"])
def examination(tmp_path_factory, request) -> Examination:
    folder = tmp_path_factory.mktemp("openapi")
    app, simulator = SERVICES[request.param]
    with make.service.listening(app(folder)) as url:
        names = [(*names, _envelope(folder)) for names in asyncio.run(_begin(url, simulator))]
        (folder / "names").write_text(json.dumps(names))
        result = _examine(f"{url}/openapi.json", folder)
        paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    operations = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    assert operations
    successes = {name for name, status in _answers(folder / "events") if 200 <= status < 300}
    if request.param == "many":
        successes.add("GET /manifest")  # a manifest is read only by its digest
    return Examination(result.stdout + result.stderr, result.returncode, operations - successes)


async def _begin(url: str, simulator: str) -> list[tuple[str, str, str, str]]:
    """Opens runs with an episode of one step; returns ids, the simulator and the artifact.

    A run's id is also an alias and the name of its agent.
    """
    client = make.service.SimulatorClient(url)
    opening = make.service.OPENING.model_copy(update={"simulator": simulator})
    names = []
    for _ in range(NUM_RUNS):
        run = (await client.open_run(opening)).id
        episode = await make.service.play(client, "echo a", run=run)
        fields = {"starting_weights": opening.starting_weights, "simulator": simulator}
        await client.attest(Claim(agent=run, artifact=ARTIFACT, **fields))
        names.append((run, episode, simulator, ARTIFACT))
        make.service.name(url, run, simulator)
        CATALOGUE.aliases[run] = simulator
    await client.close()
    return names


def _envelope(folder: Path) -> str:
    """A step's signed statement."""
    fields = {
        "artifact": ARTIFACT,
        "imitated": ARTIFACT,
        "step": "s",
        "at": "2026-03-01T12:00:00+00:00",
    }
    validation = Validation(report=records.agent_report(), **fields)
    return attest(validation, ensure_signer(folder / "keys" / STEP_KEYS)).envelope.decode()


def _examine(document: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("schemathesis")
    options = f"--seed 1 --max-examples {EXAMPLES} --generation-database none --no-color".split()
    options += ["--request-timeout", str(DEADLINE)]
    events = ["--report", "ndjson", "--report-ndjson-path", "events"]
    command = [str(program), "run", document, "--checks", ",".join(CHECKS), *options, *events]
    hooks = {"SCHEMATHESIS_HOOKS": "known_names", "NAMES": "names", "PYTHONPATH": str(PEERS)}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **hooks},
        capture_output=True,
        text=True,
        timeout=JOB_DEADLINE,
        check=False,
    )


def _answers(events: Path) -> Iterator[tuple[str, int]]:
    """Each requested operation, and the response's status."""
    for line in events.read_text().splitlines():
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for case, interaction in recorder.get("interactions", {}).items():
            request = recorder["cases"][case]["value"]
            status = (interaction["response"] or {}).get("status_code", 0)
            yield f"{request['method']} {request['path']}", status


@pytest.mark.compute
def test_every_response_conforms_to_the_openapi_document(examination):
    assert examination.status == 0, examination.said


@pytest.mark.compute
def test_every_operation_succeeded_at_least_once(examination):
    assert examination.unanswered == set()


@pytest.mark.compute
def test_links_name_existing_operations_and_operation_ids_are_unique(tmp_path):
    paths = make.service.service(tmp_path).app.openapi()["paths"]
    operations = [operation for path in paths.values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    answers = [answer for operation in operations for answer in operation["responses"].values()]
    links = [link["operationId"] for answer in answers for link in answer.get("links", {}).values()]
    assert links
    assert set(links) - set(names) == set()
