"""Maps a conversation of OpenAI's protocol to a step of an episode.

OpenAI's protocol has no sessions: each request has the whole conversation. So the number of
messages gives the step. A repeated request gets the recorded answer, and a conversation that
differs from the record is refused.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from agentworld.errors import AgentworldError, Conflict, NotFound
from agentworld.http.openai_errors import WrongField
from agentworld.http.schemas import Request
from agentworld.records.episode import (
    EpisodeOpening,
    EpisodeStep,
    Exchange,
    text_digest,
)
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.episodes.store import OpenEpisode
from agentworld.serving.protocols.chat_request import ChatMessage, ChatRequest

_NAME = re.compile("[0-9a-f]{32}")


class Conversation(NamedTuple):
    """The parts of a request's messages."""

    instruction: str | None
    """The system message; null if there is none."""
    before: tuple[Exchange, ...]
    """The earlier actions and observations, as the caller states them."""
    action: str


def parse_conversation(messages: Sequence[ChatMessage]) -> Conversation:
    """Parses an optional system message, then alternating actions and observations.

    The last message must be an action. Raises WrongField for any other order.
    """
    instruction = messages[0].content if messages[0].role in ("system", "developer") else None
    first = 0 if instruction is None else 1
    turns = messages[first:]
    for index, message in enumerate(turns):
        expected = ("user", "assistant")[index % 2]
        if message.role != expected:
            raise WrongField(
                f"messages.{first + index}.role",
                f"message {first + index} is the {message.role}'s and should be the {expected}'s:"
                " a system message comes first if at all, then user and assistant take turns",
            )
    if len(turns) % 2 == 0:
        raise WrongField("messages", "the last message is not the user's; end with an action")
    texts = [message.content for message in turns]
    pairs = zip(texts[:-1:2], texts[1::2], strict=True)
    before = tuple(
        Exchange(action=action, observation=observation) for action, observation in pairs
    )
    return Conversation(instruction, before, texts[-1])


async def take_single_step(
    authorized: AuthorizedService, run: str, request: ChatRequest, key: str | None
) -> EpisodeStep:
    """Takes the only step of a new episode, after the earlier turns of the conversation.

    With a key, the step is taken once, and a failed step can be sent again. Without a key, no
    request could name the episode of a failed step, so the episode is ended.
    """
    conversation = parse_conversation(request.messages)
    opening = unnamed_opening(run, request, conversation)
    episode = (await authorized.reset(opening, key)).episode
    try:
        return await authorized.take(episode, Request(1, conversation.action))
    except AgentworldError:
        if key is None:
            with suppress(AgentworldError):
                await authorized.close_episode(episode)
        raise


async def take_next(
    authorized: AuthorizedService, run: str, request: ChatRequest, episode: str
) -> EpisodeStep:
    """Takes the step that a conversation asks for, or returns its recorded answer."""
    conversation = parse_conversation(request.messages)
    try:
        number = step_number(await _episode(authorized, run, episode), request, conversation)
    except Conflict:  # another replica may have continued the episode
        number = step_number(
            await _episode(authorized, run, episode, reload=True), request, conversation
        )
    return await authorized.take(episode, Request(number, conversation.action))


def unnamed_opening(run: str, request: ChatRequest, conversation: Conversation) -> EpisodeOpening:
    """The opening of an episode that the request does not name."""
    start = _initial_state(request)
    return EpisodeOpening(
        run=run,
        turn_limit=1,
        simulation_instruction=conversation.instruction or "",
        seed=request.seed,
        prior_turns=conversation.before,
        **({} if start is None else {"initial_state": start}),
    )


def step_number(episode: OpenEpisode, request: ChatRequest, conversation: Conversation) -> int:
    """The number of the step; raises Conflict if the conversation differs from the record."""
    opening = episode.opening
    _check_start(episode.id, opening, request, conversation)
    recorded_digests = [*map(_digests, opening.prior_turns)]
    recorded_digests += ((step.action_digest, step.observation_digest) for step in episode.steps)
    if not len(opening.prior_turns) <= len(conversation.before) <= len(recorded_digests):
        raise Conflict(
            f"episode {episode.id} began with {len(opening.prior_turns)} turns, its next step is"
            f" {len(episode.steps) + 1}, and the request has {len(conversation.before)} turns; send"
            " all that were answered"
        )
    for index, (turn, digests) in enumerate(
        zip(conversation.before, recorded_digests, strict=False), 1
    ):
        if _digests(turn) != digests:
            raise Conflict(
                f"turn {index} of episode {episode.id} differs from the record: the request has"
                f" {turn.action[:80]!r} and {turn.observation[:80]!r}; send the recorded turn"
            )
    return len(conversation.before) - len(opening.prior_turns) + 1


def resolve_episode(header: str | None, request: ChatRequest) -> str | None:
    """The episode that a request continues; null if it names none."""
    field = (request.metadata or {}).get("episode")
    if None not in (header, field) and header != field:
        raise WrongField(
            "metadata.episode",
            f"the header names the episode {header!r:.80} and metadata {field!r:.80}; name one",
        )
    return header if field is None else field


async def _episode(
    authorized: AuthorizedService, run: str, name: str, *, reload: bool = False
) -> OpenEpisode:
    """An episode of this run; a malformed name is refused without asking the database."""
    episode = await authorized.load_open(name, reload=reload) if _NAME.fullmatch(name) else None
    if episode is None or episode.opening.run != run:
        raise NotFound(f"there is no episode {name[:80]!r} in run {run}; reset to begin one")
    return episode


def _check_start(
    name: str, opening: EpisodeOpening, request: ChatRequest, conversation: Conversation
) -> None:
    starts = {
        "the system message": (conversation.instruction, opening.simulation_instruction),
        "seed": (request.seed, opening.seed),
        "initial_state": (_initial_state(request), opening.start),
    }
    for field, (value, start) in starts.items():
        if value is not None and value != start:
            raise Conflict(
                f"{field} of episode {name} is {start!r:.80} and not {value!r:.80}; leave it out"
            )


def _initial_state(request: ChatRequest) -> str | None:
    return (request.metadata or {}).get("initial_state")


def _digests(turn: Exchange) -> tuple[str, str]:
    return text_digest(turn.action), text_digest(turn.observation)
