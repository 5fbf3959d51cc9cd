from hypothesis import given
from hypothesis import strategies as st

import make
from agentworld.records.run import Episode, EpisodeOpening, EpisodeStep


def episode(*observations):
    made = Episode(id="e", simulator=make.digest("s"), opening=EpisodeOpening(run="r"))
    for number, observation in enumerate(observations, 1):
        step = EpisodeStep(
            episode="e", number=number, action="ls", observation=observation, head=made.head
        )
        made = made.model_copy(update={"steps": (*made.steps, step.linked(made.head))})
    return made


def test_a_task_brings_its_own_start_and_limit():
    opening = EpisodeOpening(run="r", task=make.task(), initial_state="other", turn_limit=99)
    assert (opening.start, opening.limit) == (make.task().initial_state, make.task().turn_limit)


@given(st.lists(st.text(max_size=5), max_size=5))
def test_an_episode_is_intact_and_its_head_names_all_of_it(observations):
    made = episode(*observations)
    assert made.intact
    assert episode(*observations, "more").head != made.head


@given(st.lists(st.text(max_size=5), min_size=1, max_size=5), st.data())
def test_an_exchanged_observation_breaks_the_chain(observations, data):
    made = episode(*observations)
    place = data.draw(st.integers(0, len(observations) - 1))
    steps = list(made.steps)
    steps[place] = steps[place].model_copy(update={"observation": "exchanged"})
    assert not made.model_copy(update={"steps": tuple(steps)}).intact


def test_an_exchanged_opening_breaks_the_chain():
    made = episode("a")
    opening = EpisodeOpening(run="other")
    assert not made.model_copy(update={"opening": opening}).intact
