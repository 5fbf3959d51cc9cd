"""A manifest names its renderer, requests and parser by versions, which stand for bytes.

If one of these tests fails, the code renders, requests or parses otherwise than simulators were
pinned to: rename the version, and write that name and the new digest here.
"""

import asyncio
import json

import httpx
import pytest

from agentworld.engine.base import CompletionRequest
from agentworld.engine.openai import REQUEST, OpenAIEngine
from agentworld.errors import EngineError
from agentworld.records.base import digest_json
from agentworld.records.episode import EpisodeOpening
from agentworld.records.simulator import Sampling
from agentworld.records.trajectory import PromptParts
from agentworld.rendering.episode import episode_messages
from agentworld.rendering.messages import RENDERER, agent_messages, with_thought, world_messages
from agentworld.rendering.parse import PARSER, parse_observation
from make import records

TURNS = records.trajectory(("ls", "[0] ~"), ("cat ü.txt", "<think>\n</think>\n\n[1] ~")).turns
MESSAGES = [
    {"role": "system", "content": "You are a shell."},
    {"role": "user", "content": "echo \ud83d ü"},
]


def render_all():
    parts = PromptParts(
        task_description="You are a shell.",
        action_space="Lines.",
        demonstrations="ls",
        initial_state="rimo.txt: besa",
        simulation_instruction="Be slow.",
    )
    short_parts = parts.model_copy(update={"action_space": "", "demonstrations": ""})
    domains = records.pinned_domains(system_prompt="You are a shell.")
    manifest = records.manifest(domains=domains, control_text="Be slow.")
    opening = EpisodeOpening(run="r", initial_state="rimo.txt: besa")
    episode = records.episode("[0] ~", "\n[1] ~")._replace(opening=opening)
    return [
        *(world_messages(prompt, TURNS, "pwd") for prompt in (parts, short_parts)),
        agent_messages("Report rimo.txt.", TURNS),
        [with_thought("hm", "ls"), with_thought("", "ls")],
        episode_messages(manifest, episode),
    ]


def requests_of(kind):
    """The path and the bodies of the requests to an engine of this kind."""
    requests = []

    def record(request):
        requests.append([request.url.path, json.loads(request.content)])
        return httpx.Response(503)

    transport = httpx.MockTransport(record)
    engine = OpenAIEngine("http://engine", "m", kind=kind, logprobs=True, transport=transport)
    options = {"top_k": 5, "thinking": True} if kind != "openai" else {}
    for sampling, seed in [
        (Sampling(), None),
        (Sampling(temperature=0.7, top_p=0.9, max_tokens=7, stop=("\n",), **options), 7),
    ]:
        with pytest.raises(EngineError, match="status 503"):
            asyncio.run(engine.complete(CompletionRequest(MESSAGES, sampling, seed)))
    return requests


ANSWERS = [
    "besa\n[0] ~",
    "\n\nbesa \n\n",
    "<think>hm</think>\nbesa",
    "hm</THINK>besa",
    "<think>hm<predicted_observation>besa",
    "so: <predicted_observation>\na\n</predicted_observation> or"
    " <predicted_observation>\nb\n</predicted_observation>.",
    "<think>hm",
    "",
]


def test_the_renderer_version_produces_the_known_output():
    digest = "sha256:2d7788731bde33c06945b0c62e52e41a6e4164936556f5da0c1637181555fb31"
    assert (RENDERER, digest_json(render_all())) == ("chat-v1", digest)


def test_the_parser_version_produces_the_known_output():
    parsed = [parse_observation(text) for text in ANSWERS]
    digest = "sha256:ce1431a162fdbc532fa0600a58d90e167cf4e6b58b2dd33ec36ab2c4f6adde4f"
    assert (PARSER, digest_json(parsed)) == ("observation-v2", digest)


REQUESTS = {
    "openai": "sha256:0694bfb02a919854e83c8bf67a34078f7e081e1e946e503746649acf5afc550a",
    "transformers-serve": "sha256:2a9a356e29596c322437a8945c3baeb74c5e0f4299856e71898e6951d1b82018",
    "vllm": "sha256:f697f777fdb2c2d2be9cea93820aaf979e163c7e1fd24df82ac8de78686d8b9f",
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_the_request_version_produces_the_known_engine_requests(kind):
    assert (REQUEST, digest_json(requests_of(kind))) == ("chat-completions-v1", REQUESTS[kind])
