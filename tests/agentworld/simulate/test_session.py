import pytest
from hypothesis import given
from hypothesis import strategies as st

import make
from agentworld.engine.base import Completion
from agentworld.errors import Conflict, EngineError
from agentworld.records.run import Episode, EpisodeOpening
from agentworld.simulate import session

MANIFEST = make.manifest()
ACTIONS = st.sampled_from(["ls", "cat rimo.txt", "echo besa", "echo tane", ""])
SHOWN = st.sampled_from(["[0] ~", "besa\n[0] ~", "[1] ~/kolu"])
OPENINGS = st.sampled_from(
    [
        EpisodeOpening(run="r", task=make.task()),
        EpisodeOpening(run="r", turn_limit=2),
        EpisodeOpening(run="r", turn_limit=9, initial_state="rimo.txt: besa"),
    ]
)


def play(opening, turns):
    """Folds turns into an episode; what comes after its end is not taken."""
    episode = Episode(id="e", simulator=MANIFEST.digest, opening=opening)
    for action, shown in turns:
        if episode.done:
            break
        step = session.next_step(episode, action, shown)
        episode = episode.model_copy(update={"steps": (*episode.steps, step)})
    return episode


EPISODES = st.builds(play, OPENINGS, st.lists(st.tuples(ACTIONS, SHOWN), max_size=10))


@given(EPISODES)
def test_an_episode_is_a_chain_of_numbered_steps_within_its_limit(episode):
    assert [step.number for step in episode.steps] == list(range(1, len(episode.steps) + 1))
    assert len(episode.steps) <= episode.opening.limit
    assert episode.intact


@given(EPISODES)
def test_only_the_last_step_ends_an_episode_or_is_rewarded(episode):
    for step in episode.steps[:-1]:
        assert not step.done
        assert step.reward is None
    if episode.done and episode.opening.task:
        assert episode.steps[-1].reward in (0.0, 1.0)


@given(EPISODES)
def test_every_step_can_be_asked_for_again(episode):
    for step in episode.steps:
        found = session.recorded(episode, session.Request(step.number, step.action))
        assert session.answered(episode, step) == session.answered(episode, found)


@given(EPISODES, st.integers(-1, 12))
def test_a_step_is_new_only_where_it_is_the_next_one(episode, number):
    following = not episode.done and number == len(episode.steps) + 1
    if following:
        assert session.recorded(episode, session.Request(number, "ls")) is None
    elif not 1 <= number <= len(episode.steps):
        with pytest.raises(Conflict):
            session.recorded(episode, session.Request(number, "ls"))


@given(EPISODES, ACTIONS)
def test_the_engine_reads_every_turn_in_order_and_the_action_last(episode, action):
    system, *turns = session.messages(MANIFEST, episode, action)
    expected = [text for step in episode.steps for text in (step.action, step.observation)]
    assert [turn["content"] for turn in turns] == [*expected, action]
    assert episode.opening.start in system["content"]


@given(EPISODES, EPISODES)
def test_what_the_engine_reads_depends_on_the_episode_alone(first, second):
    same = (first.opening, [(s.action, s.observation) for s in first.steps]) == (
        second.opening,
        [(s.action, s.observation) for s in second.steps],
    )
    asked = [session.messages(MANIFEST, episode, "ls") for episode in (first, second)]
    assert not same or asked[0] == asked[1]


def test_an_unseeded_simulator_has_no_seed():
    assert session.seed(MANIFEST, play(EpisodeOpening(run="r"), [])) is None


def test_the_prompt_and_the_longest_answer_must_fit():
    manifest = make.manifest(context_tokens=100, sampling={"max_tokens": 40})
    assert session.observation(manifest, Completion("[0] ~", 60, 3, "stop")) == "[0] ~"
    with pytest.raises(EngineError, match="do not fit in 100") as caught:
        session.observation(manifest, Completion("[0] ~", 61, 3, "stop"))
    assert (caught.value.kind, caught.value.retryable) == ("context", False)
