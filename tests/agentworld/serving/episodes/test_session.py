import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.engine.base import Completion
from agentworld.errors import Conflict, EngineError, InputError
from agentworld.http.schemas import Request
from agentworld.records.episode import Confidence, Episode, EpisodeOpening
from agentworld.rendering.episode import episode_messages, step_messages
from agentworld.serving.episodes import session
from agentworld.serving.episodes.store import OpenEpisode
from make import records

MANIFEST = records.manifest()
ACTIONS = st.sampled_from(["ls", "cat rimo.txt", "echo besa", "echo tane", ""])
OBSERVATIONS = st.sampled_from(["[0] ~", "besa\n[0] ~", "[1] ~/kolu"])
OPENINGS = st.sampled_from(
    [
        EpisodeOpening(run="r", domain="shell", task=records.task()),
        EpisodeOpening(run="r", domain="shell", turn_limit=2),
        EpisodeOpening(run="r", domain="shell", turn_limit=9, initial_state="rimo.txt: besa"),
    ]
)


def new_episode(opening):
    return open_episode(Episode.new("e", MANIFEST.digest, opening))


def open_episode(episode):
    return OpenEpisode(episode, episode_messages(MANIFEST, episode), ())


def build_record(episode):
    empty = Episode.new(episode.id, MANIFEST.digest, episode.opening)
    return empty._replace(steps=tuple(episode.steps))


def play(opening, turns):
    """Adds the turns to a new episode; turns after its end are ignored."""
    episode = new_episode(opening)
    for action, text in turns:
        if episode.closed:
            break
        step = session.next_step(episode, action, session.StepObservation(text, Confidence()))
        episode.add(step, step_messages(step))
    return episode


EPISODES = st.builds(play, OPENINGS, st.lists(st.tuples(ACTIONS, OBSERVATIONS), max_size=10))


@given(EPISODES)
def test_an_episode_is_a_chain_of_numbered_steps_within_its_limit(episode):
    assert [step.number for step in episode.steps] == list(range(1, len(episode.steps) + 1))
    assert len(episode.steps) <= episode.opening.limit
    assert build_record(episode).intact


@given(EPISODES)
def test_only_the_last_step_ends_an_episode_or_is_rewarded(episode):
    for step in episode.steps[:-1]:
        assert not step.done
        assert step.reward is None
    if episode.closed and episode.opening.task:
        assert episode.steps[-1].reward in (0.0, 1.0)


@pytest.mark.compute
@given(EPISODES)
def test_every_recorded_step_can_be_repeated(episode):
    for step in episode.steps:
        assert session.find_recorded(episode, Request(step.number, step.action)) == step


@pytest.mark.compute
@given(EPISODES, st.integers(-1, 12))
def test_only_the_next_step_number_is_a_new_step(episode, number):
    is_next = not episode.closed and number == len(episode.steps) + 1
    if is_next:
        assert session.find_recorded(episode, Request(number, "ls")) is None
    elif not 1 <= number <= len(episode.steps):
        with pytest.raises(Conflict):
            session.find_recorded(episode, Request(number, "ls"))


@given(EPISODES)
def test_the_engine_reads_the_start_and_every_turn_in_order(episode):
    system, *turns = episode.history
    expected = [text for step in episode.steps for text in (step.action, step.observation)]
    assert [turn["content"] for turn in turns] == expected
    assert episode.opening.start in system["content"]


@pytest.mark.compute
@given(EPISODES)
def test_an_episode_reloaded_from_its_steps_equals_the_cached_episode(episode):
    reloaded_episode = open_episode(build_record(episode))
    assert (reloaded_episode.history, reloaded_episode.head, reloaded_episode.steps) == (
        episode.history,
        episode.head,
        episode.steps,
    )


@pytest.mark.compute
@given(EPISODES, st.data())
def test_a_fork_has_the_same_history_with_other_heads(episode, data):
    unfinished_steps = [step for step in episode.steps if not step.done]
    num_copied = data.draw(st.integers(0, len(unfinished_steps)))
    empty_fork = Episode.new("fork", MANIFEST.digest, episode.opening)
    fork = session.copy_steps(empty_fork, episode.steps[:num_copied])
    assert fork.intact
    assert open_episode(fork).history == episode.history[: 1 + 2 * num_copied]
    assert not {step.head for step in fork.steps} & {step.head for step in episode.steps}


def test_a_finished_episode_cannot_be_forked_at_its_last_step():
    episode = play(EpisodeOpening(run="r", domain="shell", turn_limit=1), [("ls", "[0] ~")])
    with pytest.raises(Conflict, match="fork it earlier"):
        session.copy_steps(Episode.new("fork", MANIFEST.digest, episode.opening), episode.steps)


@pytest.mark.compute
@given(EPISODES)
def test_a_replay_repeats_the_record_and_refuses_other_or_further_actions(episode):
    replay = OpenEpisode(
        Episode.new("replay", MANIFEST.digest, episode.opening), [], tuple(episode.steps)
    )
    for step in episode.steps:
        observation = session.replay_step(replay, step.action)
        assert observation == session.StepObservation(step.observation, step.confidence)
        with pytest.raises(Conflict, match="another action"):
            session.replay_step(replay, step.action + "!")
        replay.add(step, step_messages(step))
    with pytest.raises(Conflict, match="the record ends"):
        session.replay_step(replay, "ls")


def test_an_unseeded_simulator_has_no_seed():
    opening = EpisodeOpening(run="r")
    assert session.seed(MANIFEST, opening, 1) is None


def test_an_unseeded_simulator_refuses_a_seed():
    with pytest.raises(InputError, match="seed 7 cannot be used"):
        session.check_seed(MANIFEST, EpisodeOpening(run="r", seed=7))


def test_a_seeded_simulator_uses_a_different_seed_for_each_step():
    manifest = records.manifest(sampling={"seed_policy": "seeded"})
    seeds = [
        session.seed(manifest, EpisodeOpening(run="r", seed=episode_seed), number)
        for episode_seed, number in ((7, 1), (7, 1), (7, 2), (8, 1))
    ]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3


def test_the_prompt_and_the_longest_answer_must_fit_in_the_context():
    manifest = records.manifest(context_tokens=100, sampling={"max_tokens": 40})
    assert session.observation(manifest, Completion("[0] ~", 60, 3, "stop")) == "[0] ~"
    with pytest.raises(EngineError, match="do not fit in 100") as caught:
        session.observation(manifest, Completion("[0] ~", 61, 3, "stop"))
    assert (caught.value.kind, caught.value.retryable) == ("context", False)


def test_the_seed_of_an_episode_overrides_the_seed_of_its_task():
    manifest = records.manifest(sampling={"seed_policy": "seeded"})
    task_opening = EpisodeOpening(run="r", domain="shell", task=records.task(seed=7))
    seeds = [
        session.seed(manifest, opening, 1)
        for opening in (
            task_opening,
            EpisodeOpening(run="r", seed=7),
            task_opening.model_copy(update={"seed": 8}),
        )
    ]
    assert seeds[0] == seeds[1] != seeds[2]
