"""Every command shows text of agents and worlds, without any effect on the terminal."""

import asyncio
import json
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import typer.main

import make.service
from agentworld.audit.read.sources import Sources
from agentworld.client.simulator import SIMULATOR_HEADER, SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations import declarations, ledger
from agentworld.operations.ledger import open_evidence, open_ledger
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import RunOpening
from agentworld_cli.main import app
from make import records

SAYS = "\x1b[2J\x1b]52;c;ZXZpbA==\x07 \x9b1A\x7f\r\x08 \u202egpj.exe\u2066 \u2028 \ud800 \U000e0041"
"""Clears a screen, writes a clipboard, goes up a line, turns what follows around, hides."""
POSES = "\nstep 9:\n  > rm\nended: done\n\x1b[8m"
"""Text that imitates the transcript's own lines."""
NASTY = SAYS + POSES
WORDS = NASTY.replace("\ud800", "")

SHOWING = [
    "run list --store {store}",
    "run show {run} --store {store}",
    "run show {run} --url {url}",
    "run verify {run} --store {store}",
    "run join {run} --trajectory {store}/log --store {store}",
    "run export {run} --out {store}/out --store {store}",
    "episode list {run} --store {store}",
    "episode show {episode} --store {store}",
    "episode show {episode} --url {url}",
    "episode verify {episode} --store {store}",
    "episode fork {episode} --step 1 --url {url}",
    "episode replay {episode} --url {url}",
    "agent list --store {store}",
    "audit simulator {simulator} --store {store}",
    "audit simulator {simulator} --at 2020-01-01 --store {store}",
    "audit dataset {data} --store {store}",
    "audit alias production --store {store}",
    "audit verify --store {store}",
    "audit verify --at 2020-01-01 --store {store}",
    "audit restored --store {store}",
    "audit withdrawn --store {store}",
    "cost --store {store}",
    "cost --run {run} --store {store}",
    "alias list --store {store}",
    "alias show production --store {store}",
    "simulator list --store {store}",
]
NAMED = [
    "run open",
    "run close",
    "episode close",
    "episode erase",
    "audit agent",
    "audit diff",
    "audit export",
    "agent validate",
    "agent register",
    "agent adopt",
    "alias set",
    "alias end",
]
"""Their results are names of ours, or what these tests would have to train."""


def parrot(messages):
    """Echoes the action without its `echo`."""
    return messages[-1]["content"].removeprefix("echo ")


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A store and a service with an episode of nasty texts: their addresses and ids, by name."""
    store = tmp_path_factory.mktemp("nasty")
    service = make.service.service(store, parrot)
    pinned, data = records.pinned(store), records.digest("data")
    records.finished_step(store, "prepare", data)
    with closing(open_ledger(store)) as ledger:
        ledger.aliases.set("production", pinned.digest, WORDS, override=WORDS)
    opening = RunOpening(
        agent=WORDS, starting_weights=records.digest("starting"), opened_by=WORDS, simulator=None
    )

    async def work(url):
        with TrajectoryLog(store / "log") as trajectory:
            client = SimulatorClient(url, trajectory=trajectory)
            run = await client.open_run(opening)
            task = records.task(id=WORDS, instruction=WORDS)
            episode_opening = EpisodeOpening(run=run.id, task=task, simulation_instruction=WORDS)
            beginning = await client.begin(episode_opening)
            for _ in range(2):
                await client.step(beginning.episode, f"echo {NASTY}")
            await client.close()
            return {"run": run.id, "episode": beginning.episode}

    with make.service.listening(service.app) as url:
        names = asyncio.run(work(url))
        service.seal()
        yield {"store": store, "url": url, "simulator": pinned.digest, "data": data, **names}


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch):
    """Gives these stores an empty registry; a run's record is still read."""

    def open_sources(store):
        return Sources(MemoryRegistry(), open_ledger(store), store, open_evidence(store))

    for module in (declarations, ledger):
        monkeypatch.setattr(module, "open_sources", open_sources)


def harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("form", ["", " --json"], ids=["for people", "for machines"])
@pytest.mark.parametrize("words", SHOWING)
def test_every_command_escapes_control_characters(call, nasty, words, form):
    result = call(words.format(**nasty) + form)
    assert result.code == 0
    assert harmless(result.out + result.error)
    assert form == "" or result.out.isascii()


def test_every_run_episode_audit_agent_and_alias_command_is_covered():
    group = typer.main.get_command(app)
    nouns = ("run", "episode", "audit", "agent", "alias")
    commands = {f"{noun} {verb}" for noun in nouns for verb in group.commands[noun].commands}
    tested_commands = {" ".join(words.split()[:2]) for words in SHOWING}
    assert commands == (tested_commands & commands) | set(NAMED)


@pytest.mark.parametrize("where", ["--store {store}", "--url {url}"])
def test_texts_cannot_imitate_the_lines_of_a_transcript(call, nasty, where):
    out = call(f"episode show {nasty['episode']} {where}".format(**nasty)).out
    own_lines = [line for line in out.splitlines() if not line.startswith("  ")]
    assert own_lines[2:] == [
        "task:",
        "start:",
        "simulation instruction:",
        "step 1:",
        "step 2:",
        "open",
    ]
    assert out.count(r"\x1b]52;c;ZXZpbA==\x07") == 6
    assert out.count(r"\u202egpj.exe\u2066") == 6
    assert out.count("\n  > \\ud800") == 0
    assert out.count("  ended: done\n") == 4


def test_json_output_contains_every_text_unchanged(call, nasty):
    out = call("episode show {episode} --store {store} --json".format(**nasty)).out
    episode = json.loads(out)
    assert [step["observation"] for step in episode["steps"]] == [NASTY, NASTY]
    assert episode["opening"]["task"]["instruction"] == WORDS


@pytest.fixture
def fake_server():
    """The address of a server that is not a simulator, and the list that holds its response."""
    responses: list[tuple[int, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = responses[0]
            self.send_response(status)
            self.send_header(SIMULATOR_HEADER, make.service.SIMULATOR)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_arguments):
            """Logs no request."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", responses
    server.shutdown()
    server.server_close()


def refusal(message):
    problem = {"kind": "input", "message": message, "retryable": False}
    return json.dumps({"error": problem}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        (422, refusal(NASTY)),
        (500, WORDS.encode()),
        (200, WORDS.encode()),
        (200, json.dumps({"id": NASTY}).encode()),
        (200, json.dumps(NASTY).encode()),
    ],
    ids=range(5),
)
@pytest.mark.parametrize("words", ["run show x", "episode show x", "episode replay x"])
def test_errors_escape_control_characters_in_service_answers(call, fake_server, words, answer):
    url, responses = fake_server
    responses.append(answer)
    result = call(f"{words} --url {url}")
    assert (result.code, result.out, result.error.count("\n")) == (6, "", 1)
    assert harmless(result.error)


def test_control_characters_in_episode_names_of_a_service_are_escaped(call, fake_server, nasty):
    output = call("episode show {episode} --store {store} --json".format(**nasty)).out
    url, responses = fake_server
    episode = Episode.new(WORDS, make.service.SIMULATOR, EpisodeOpening(run=WORDS))
    fields = {**json.loads(output), "id": WORDS, "run": WORDS, "steps": [], "closed": NASTY}
    fields |= {"opening": episode.opening.model_dump(mode="json"), "head": episode.head}
    fields |= {"opening_digest": episode.opening_digest}
    responses.append((200, json.dumps(fields).encode()))
    result = call(f"episode show x --url {url}")
    assert result.code == 0, result.error
    assert harmless(result.out)
    assert len(result.out.splitlines()) == 5


def test_no_command_prints_json_with_model_dump_json():
    names = sorted(
        path.name
        for path in (Path(__file__).parents[2] / "platform/agentworld_cli").glob("*.py")
        if "model_dump_json" in path.read_text()
    )
    assert names == []
