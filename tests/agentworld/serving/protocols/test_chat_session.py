import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.errors import Conflict
from agentworld.http.openai_errors import WrongField
from agentworld.records.episode import Episode, EpisodeOpening, Exchange
from agentworld.serving.protocols.chat_model import check_pinned
from agentworld.serving.protocols.chat_request import ChatMessage, ChatRequest, PinnedFields
from agentworld.serving.protocols.chat_session import (
    parse_conversation,
    step_number,
    unnamed_opening,
)
from make import records

ANY_TEXT = st.text(st.characters(), max_size=4)  # lone surrogates too
EXCHANGE = st.builds(Exchange, action=ANY_TEXT, observation=ANY_TEXT)
EXCHANGES = st.lists(EXCHANGE, max_size=4).map(tuple)
ROLES = st.sampled_from(["system", "developer", "user", "assistant"])


def request(turns, action="ls", instruction=None, **fields):
    """A request with these turns and an action."""
    pairs = [] if instruction is None else [("system", instruction)]
    for turn in turns:
        pairs += [("user", turn.action), ("assistant", turn.observation)]
    messages = [{"role": role, "content": text} for role, text in [*pairs, ("user", action)]]
    return ChatRequest(model="m", messages=messages, **fields)


def number(episode, chat_request):
    return step_number(episode, chat_request, parse_conversation(chat_request.messages))


def episode_of(prior_turns, recorded_turns):
    """An episode with these prior turns and these recorded turns."""
    empty = records.episode()._replace(opening=EpisodeOpening(run="r", prior_turns=prior_turns))
    return records.episode(*(turn.observation for turn in recorded_turns), base=empty)


@given(st.none() | ANY_TEXT, EXCHANGES, ANY_TEXT)
def test_parsing_returns_the_instruction_turns_and_action_of_a_conversation(
    instruction, turns, action
):
    chat_request = request(turns, action, instruction)
    assert parse_conversation(chat_request.messages) == (instruction, turns, action)


@given(st.lists(ROLES, min_size=1, max_size=6))
def test_messages_in_a_wrong_order_are_refused(roles):
    messages = [ChatMessage(role=role, content=role) for role in roles]
    tail = roles[1:] if roles[0] in ("system", "developer") else roles
    is_valid = len(tail) % 2 == 1 and tail == ["user", "assistant"] * (len(tail) // 2) + ["user"]
    if is_valid:
        assert len(parse_conversation(messages).before) == len(tail) // 2
    else:
        with pytest.raises(WrongField):
            parse_conversation(messages)


@given(st.none() | ANY_TEXT, EXCHANGES, st.none() | ANY_TEXT)
def test_an_unnamed_episode_opens_with_all_earlier_turns(instruction, turns, start):
    metadata = {} if start is None else {"initial_state": start}
    chat_request = request(turns, instruction=instruction, metadata=metadata)
    opening = unnamed_opening("r", chat_request, parse_conversation(chat_request.messages))
    assert (opening.prior_turns, opening.turn_limit) == (turns, 1)
    assert opening.simulation_instruction == (instruction or "")
    assert opening.start == (start or "")


def turns_of(observations):
    return tuple(Exchange(action="ls", observation=observation) for observation in observations)


RECORDED_TURNS = st.lists(ANY_TEXT, max_size=4).map(turns_of)


@pytest.mark.waits
@given(EXCHANGES, RECORDED_TURNS, st.data())
def test_the_step_number_is_the_position_after_the_prior_turns(given_, taken, data):
    position = data.draw(st.integers(0, len(taken)))
    chat_request = request((*given_, *taken[:position]))
    assert number(episode_of(given_, taken), chat_request) == position + 1


@pytest.mark.waits
@given(EXCHANGES, RECORDED_TURNS, st.data())
def test_a_turn_that_differs_from_the_record_is_a_conflict(given_, taken, data):
    turns = [*given_, *taken, Exchange(action="ls", observation="more")]
    index = data.draw(st.integers(0, len(turns) - 1))
    field = data.draw(st.sampled_from(["action", "observation"]))
    turns[index] = turns[index].model_copy(update={field: getattr(turns[index], field) + "!"})
    with pytest.raises(Conflict):
        number(episode_of(given_, taken), request(turns))


@pytest.mark.waits
@given(EXCHANGES.filter(len), RECORDED_TURNS)
def test_omitting_a_prior_turn_is_a_conflict(given_, taken):
    with pytest.raises(Conflict, match=f"began with {len(given_)} turns"):
        number(episode_of(given_, taken), request(given_[:-1]))


def test_an_erased_text_is_compared_by_its_digest():
    episode = episode_of((), turns_of(["a"]))
    erased_steps = tuple(step._replace(action=None, observation=None) for step in episode.steps)
    assert number(episode._replace(steps=erased_steps), request(turns_of(["a"]))) == 2


def test_every_pinned_field_has_a_pinned_value_and_defaults_to_none():
    plain = ChatRequest(model="m", messages=[{"role": "user", "content": "ls"}])
    check_pinned(records.manifest().sampling, plain)
    assert not {name for name in PinnedFields.model_fields if getattr(plain, name) is not None}


def test_prior_turns_are_serialized_only_if_given():
    assert EpisodeOpening(run="r").text == '{"run":"r"}'
    opening = EpisodeOpening(run="r", prior_turns=turns_of(["a"]))
    assert opening.text == '{"prior_turns":[{"action":"ls","observation":"a"}],"run":"r"}'
    assert Episode.new("e", records.digest("s"), opening).has_whole_opening
