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

PEERS = Path(__file__).parents[3] / "peers"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
MADE = records.digest("made")
EXAMPLES = 30  # of each operation, and as many walks along links
KNOWN = 80  # runs with an episode; many are closed on the way


class Examined(NamedTuple):
    """The results."""

    said: str
    status: int
    unanswered: set[str]
    """The operations that were never answered with success."""


CATALOGUE = make.many.Catalogue()
HOUSES = {
    "one": (lambda folder: make.service.service(folder).app, make.service.SIMULATOR),
    "many": (lambda folder: make.many.app(folder, CATALOGUE), make.many.SECOND.digest),
}
"""Services, and a simulator that is known there."""


@pytest.fixture(scope="module", params=[pytest.param("one", marks=pytest.mark.long), "many"])
def examined(tmp_path_factory, request) -> Examined:
    folder = tmp_path_factory.mktemp("openapi")
    app, simulator = HOUSES[request.param]
    with make.service.listening(app(folder)) as url:
        names = [(*each, _envelope(folder)) for each in asyncio.run(_begin(url, simulator))]
        (folder / "names").write_text(json.dumps(names))
        done = _examine(f"{url}/openapi.json", folder)
        paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    operations = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    assert operations
    answered = {name for name, status in _answers(folder / "events") if 200 <= status < 300}
    if request.param == "many":
        answered.add("GET /manifest")  # which is had by its digest alone
    return Examined(done.stdout + done.stderr, done.returncode, operations - answered)


async def _begin(url: str, simulator: str) -> list[tuple[str, str, str, str]]:
    """Runs with an episode that has one step, their simulator, and what they are to make.

    A run's id is an alias too, and the name of its agent.
    """
    world = make.service.SimulatorClient(url)
    opening = make.service.OPENING.model_copy(update={"simulator": simulator})
    begun = []
    for _ in range(KNOWN):
        run = (await world.open_run(opening)).id
        episode = await make.service.play(world, "echo a", run=run)
        told = {"starting_weights": opening.starting_weights, "simulator": simulator}
        await world.attest(Claim(agent=run, artifact=MADE, **told))
        begun.append((run, episode, simulator, MADE))
        make.service.name(url, run, simulator)
        CATALOGUE.aliases[run] = simulator
    await world.close()
    return begun


def _envelope(folder: Path) -> str:
    """A step's signed statement."""
    known = {"artifact": MADE, "imitated": MADE, "step": "s", "at": "2026-03-01T12:00:00+00:00"}
    told = Validation(report=records.agent_report(), **known)
    return attest(told, ensure_signer(folder / "keys" / STEP_KEYS)).envelope.decode()


def _examine(document: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("schemathesis")
    options = f"--seed 1 --max-examples {EXAMPLES} --generation-database none --no-color".split()
    events = ["--report", "ndjson", "--report-ndjson-path", "events"]
    command = [str(program), "run", document, "--checks", ",".join(CHECKS), *options, *events]
    hooks = {"SCHEMATHESIS_HOOKS": "known_names", "NAMES": "names", "PYTHONPATH": str(PEERS)}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **hooks},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _answers(events: Path) -> Iterator[tuple[str, int]]:
    """Each requested operation, and the response's status."""
    for line in events.read_text().splitlines():
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for case, interaction in recorder.get("interactions", {}).items():
            asked = recorder["cases"][case]["value"]
            status = (interaction["response"] or {}).get("status_code", 0)
            yield f"{asked['method']} {asked['path']}", status


@pytest.mark.compute
def test_every_response_conforms_to_the_openapi_document(examined):
    assert examined.status == 0, examined.said


@pytest.mark.compute
def test_every_operation_succeeded_at_least_once(examined):
    assert examined.unanswered == set()


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
