"""What a conversation by OpenAI's protocol means: which step of which episode it asks for.

OpenAI's protocol has no sessions: each request tells the whole conversation. So its place in
it names the step, a request that is sent again gets the recorded answer, and one that tells another
conversation than was had is refused.
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
    """What a request tells."""

    instruction: str | None
    """The system message; null where there is none."""
    before: tuple[Exchange, ...]
    """What was done and shown until now, as the caller tells it."""
    action: str


def parse_conversation(messages: Sequence[ChatMessage]) -> Conversation:
    """Perhaps a system message, then actions and observations in turn, and an action at the end.

    Raises WrongField for any other order.
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
    """The one step of an episode of its own, which what was told comes before.

    Under a key it is taken once, and one that failed may be tried again. Without one nobody could
    name the episode of a failed step, so that it is ended at once.
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
    """The step of an episode that a conversation asks for, now or again."""
    conversation = parse_conversation(request.messages)
    try:
        number = step_number(await _episode(authorized, run, episode), request, conversation)
    except Conflict:  # another replica may have gone on with it
        number = step_number(
            await _episode(authorized, run, episode, reload=True), request, conversation
        )
    return await authorized.take(episode, Request(number, conversation.action))


def unnamed_opening(run: str, request: ChatRequest, conversation: Conversation) -> EpisodeOpening:
    """How an episode begins that nobody named."""
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
    """The step that follows on what is told; raises Conflict where it is not what was recorded."""
    opening = episode.opening
    _check_start(episode.id, opening, request, conversation)
    recorded_digests = [*map(_digests, opening.prior_turns)]
    recorded_digests += ((step.action_digest, step.observation_digest) for step in episode.steps)
    if not len(opening.prior_turns) <= len(conversation.before) <= len(recorded_digests):
        raise Conflict(
            f"episode {episode.id} was given {len(opening.prior_turns)} turns, its next step is"
            f" {len(episode.steps) + 1}, and {len(conversation.before)} turns are told; tell all"
            " that were answered"
        )
    for index, (turn, digests) in enumerate(
        zip(conversation.before, recorded_digests, strict=False), 1
    ):
        if _digests(turn) != digests:
            raise Conflict(
                f"turn {index} of episode {episode.id} was another one than {turn.action[:80]!r}"
                f" and {turn.observation[:80]!r}; tell what was said"
            )
    return len(conversation.before) - len(opening.prior_turns) + 1


def resolve_episode(header: str | None, request: ChatRequest) -> str | None:
    """The episode that a request goes on with; null where it names none."""
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
    """Of this run; what is no name of ours names none, and no database is asked."""
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
