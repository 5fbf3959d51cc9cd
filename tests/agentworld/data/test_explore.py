import re
from itertools import count

import pytest

from agentworld.data.explore import explore
from agentworld.domains.shell.tags import annotate, has_unseen_word
from agentworld.domains.shell.session import LiveShell
from agentworld.domains.shell.start import parse_files
from agentworld.errors import SandboxBroken
from agentworld.recipes.data import CollectRecipe

RECIPE = CollectRecipe(turns_per_episode=6)


class FragileShell(LiveShell):
    """Breaks at every step whose number, over all shells, is in `breaks_at`."""

    def __init__(self, numbers, breaks_at):
        super().__init__()
        self._numbers = numbers
        self._breaks_at = breaks_at

    def step(self, action):
        if next(self._numbers) in self._breaks_at:
            self.close()
            raise SandboxBroken("as the test wants it")
        return super().step(action)


def fragile(breaks_at):
    numbers = count()
    return lambda: FragileShell(numbers, breaks_at)


@pytest.fixture(scope="module")
def errands():
    return explore(RECIPE.model_copy(update={"task_share": 1}), range(40), held_out=False)


@pytest.fixture(scope="module")
def wanderers():
    return explore(RECIPE.model_copy(update={"task_share": 0}), range(10), held_out=False)


@pytest.mark.waits
def test_an_episode_is_always_the_same_whichever_others_are_played(wanderers):
    recipe = RECIPE.model_copy(update={"task_share": 0})
    assert explore(recipe, [7, 3], held_out=False) == [wanderers[7], wanderers[3]]


def test_another_seed_plays_other_episodes(wanderers):
    recipe = RECIPE.model_copy(update={"task_share": 0, "seed": 1})
    assert explore(recipe, [0], held_out=False)[0].turns != wanderers[0].turns


def test_a_wanderer_takes_as_many_turns_as_the_recipe_says(wanderers):
    assert {len(each.turns) for each in wanderers} == {6}
    assert {(each.source, each.task) for each in wanderers} == {("wanderer", None)}


@pytest.mark.waits
def test_so_many_episodes_are_errands_as_the_recipe_says():
    recipe = RECIPE.model_copy(update={"turns_per_episode": 2, "task_share": 0.5})
    sources = [each.source for each in explore(recipe, range(60), held_out=False)]
    assert 0.3 < sources.count("errand") / 60 < 0.7


@pytest.mark.waits
def test_an_errand_ends_with_the_first_action_that_closes_its_task(errands):
    for errand in errands:
        closing = [bool(re.fullmatch(errand.task.success.closing, t.action)) for t in errand.turns]
        assert not any(closing[:-1])
        assert len(errand.turns) <= 10
    assert sum(len(errand.turns) < 10 for errand in errands) > 20


@pytest.mark.waits
def test_most_errands_are_closed_and_some_succeed(errands):
    ends = [errand.turns[-1].observation.rpartition("\n")[0] for errand in errands]
    rights = [end == each.task.success.output for end, each in zip(ends, errands, strict=True)]
    assert 5 < sum(rights) < 40


@pytest.mark.waits
def test_the_start_is_told_as_it_is(errands):
    with LiveShell(seconds=60) as shell:
        for errand in errands[:5]:
            shell.reset(parse_files(errand.initial_state))
            assert shell.step(errand.turns[0].action) == errand.turns[0].observation


def test_held_out_words_are_in_held_out_episodes_alone(wanderers):
    held_out = explore(RECIPE, range(6), held_out=True)
    assert all(each.held_out for each in held_out)
    texts = [each.model_dump_json() for each in held_out]
    assert any(has_unseen_word(text) for text in texts)
    assert not any(has_unseen_word(each.model_dump_json()) for each in wanderers)


def test_the_state_is_recorded_where_the_recipe_wants_it(wanderers):
    recipe = RECIPE.model_copy(update={"task_share": 0, "record_state": True})
    (seen,) = explore(recipe, [0], held_out=False)
    assert all(turn.state for turn in seen.turns)
    plain = [(turn.action, turn.observation) for turn in wanderers[0].turns]
    assert [(turn.action, turn.observation) for turn in seen.turns] == plain


def test_an_episode_that_broke_its_sandbox_is_left_out_and_the_next_gets_a_new_one(wanderers):
    recipe = RECIPE.model_copy(update={"task_share": 0})
    kept = explore(recipe, range(3), held_out=False, open_shell=fragile({8}))
    assert kept == [wanderers[0], wanderers[2]]


@pytest.mark.waits
def test_nothing_is_recorded_where_every_sandbox_breaks():
    with pytest.raises(SandboxBroken, match="every episode"):
        explore(RECIPE, range(3), held_out=False, open_shell=fragile(range(99)))


@pytest.mark.waits
def test_the_notes_say_what_a_shell_without_the_history_shows_differently(wanderers):
    """The counterfactual: a turn without a dependency shows the same in a fresh episode."""
    with LiveShell(seconds=60) as shell:
        for episode in wanderers:
            notes = annotate(episode.initial_state, episode.turns)
            for turn, note in zip(episode.turns, notes, strict=True):
                shell.reset(parse_files(episode.initial_state))
                same = shell.step(turn.action) == turn.observation
                assert same or note.depends_on_history
