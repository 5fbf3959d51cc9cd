"""Explorers in live shells, and in environments that a test wrote."""

import asyncio
import re
from itertools import count

import pytest

from agentworld.data import explore as module
from agentworld.domains.base import HISTORY
from agentworld.domains.live import Observation
from agentworld.domains.shell.session import LiveShell
from agentworld.domains.shell.tags import tags_of
from agentworld.domains.start_files import parse_files
from agentworld.domains.words import has_unseen_word
from agentworld.errors import EnvironmentBroken, InputError
from agentworld.recipes.data import CollectRecipe
from make import records
from make.live_domains import ScriptedDomain, registered

RECIPE = CollectRecipe(domain="shell", turns_per_episode=6)
RANDOM = RECIPE.model_copy(update={"task_share": 0})


def explore(recipe, episodes, *, held_out=False):
    return asyncio.run(module.explore(recipe, episodes, held_out=held_out))


@pytest.fixture
def break_shells(monkeypatch):
    """Breaks shells at these steps, counted over all shells."""

    def break_at(step_numbers):
        numbers = count()

        class FragileShell(LiveShell):
            def step(self, action):
                if next(numbers) in step_numbers:
                    self.close()
                    raise EnvironmentBroken("as the test wants it")
                return super().step(action)

        monkeypatch.setattr("agentworld.domains.shell.live.LiveShell", FragileShell)

    return break_at


@pytest.fixture(scope="module")
def pursuits():
    return explore(RECIPE.model_copy(update={"task_share": 1}), range(40))


@pytest.fixture(scope="module")
def explorations():
    return explore(RANDOM, range(10))


@pytest.mark.waits
def test_the_domain_of_an_episode_is_drawn_by_its_weight():
    recipe = RANDOM.model_copy(update={"domain": None, "mixture": {"terminal": 1, "shell": 9}})
    episodes = explore(recipe, range(20))
    domains = [episode.domain for episode in episodes]
    assert 0 < domains.count("terminal") < 8
    assert domains.count("shell") == 20 - domains.count("terminal")
    assert explore(recipe, [7, 3]) == [episodes[7], episodes[3]]
    prefixes = {episode.turns[0].action[:1] for episode in episodes if episode.domain == "terminal"}
    assert prefixes == {"["}


@pytest.mark.parametrize(
    "settings",
    [
        {"mixture": {"shell": 1}, "domain": "mcp"},
        {"mixture": {"shell": 1}, "trajectories": "logs"},
        {"mixture": {"shell": 1}, "options": {"servers": {}}},
        {"mixture": {"shell": 0}},
    ],
)
def test_a_mixture_beside_other_domain_settings_or_with_zero_weight_is_refused(settings):
    with pytest.raises(ValueError, match="mixture"):
        CollectRecipe(**settings)


@pytest.mark.waits
def test_an_episode_does_not_depend_on_the_other_episodes(explorations):
    assert explore(RANDOM, [7, 3]) == [explorations[7], explorations[3]]


def test_options_apply_to_the_environments_unless_recordings_are_named(explorations):
    recipe = RANDOM.model_copy(update={"options": {"source": "harness"}})
    imports = recipe.model_copy(update={"trajectories": "logs.jsonl"})
    assert explore(imports, [0]) == [explorations[0]]
    with pytest.raises(InputError, match="environments of shell have no options source"):
        explore(recipe, [0])


@pytest.mark.waits
def test_another_seed_plays_other_episodes(explorations):
    recipe = RANDOM.model_copy(update={"seed": 1})
    assert explore(recipe, [0])[0].turns != explorations[0].turns


@pytest.mark.waits
def test_a_random_explorer_takes_the_recipes_number_of_turns(explorations):
    assert {len(episode.turns) for episode in explorations} == {6}
    assert {(episode.source, episode.task) for episode in explorations} == {
        ("random-explorer", None)
    }


@pytest.mark.waits
def test_the_recipes_share_of_episodes_pursues_a_task():
    recipe = RECIPE.model_copy(update={"turns_per_episode": 2, "task_share": 0.5})
    sources = [episode.source for episode in explore(recipe, range(60))]
    assert 0.3 < sources.count("task-explorer") / 60 < 0.7


@pytest.mark.waits
def test_an_episode_with_a_task_ends_with_the_first_closing_action(pursuits):
    for pursuit in pursuits:
        closings = [
            bool(re.fullmatch(pursuit.task.success.closing, turn.action)) for turn in pursuit.turns
        ]
        assert not any(closings[:-1])
        assert len(pursuit.turns) <= 10
    assert sum(len(pursuit.turns) < 10 for pursuit in pursuits) > 20


@pytest.mark.waits
def test_some_but_not_all_episodes_with_a_task_succeed(pursuits):
    ends = [pursuit.turns[-1].observation.rpartition("\n")[0] for pursuit in pursuits]
    successes = [
        end == pursuit.task.success.output for end, pursuit in zip(ends, pursuits, strict=True)
    ]
    assert 5 < sum(successes) < 40


@pytest.mark.waits
def test_the_recorded_initial_state_reproduces_the_first_observation(pursuits):
    with LiveShell(seconds=60) as shell:
        for pursuit in pursuits[:5]:
            shell.reset(parse_files(pursuit.initial_state))
            assert shell.step(pursuit.turns[0].action) == pursuit.turns[0].observation


@pytest.mark.waits
def test_only_held_out_episodes_have_held_out_words_and_counted_changes(explorations):
    episodes = explore(RECIPE, range(6), held_out=True)
    turns = [turn for episode in episodes for turn in episode.turns]
    assert None not in {turn.num_changed for turn in turns}
    assert {turn.num_changed for turn in turns if turn.action.startswith("cat ")} == {0}
    assert {turn.num_changed for turn in turns if turn.action.startswith("cd ")} <= {0, 1}
    assert {1} <= {turn.num_changed for turn in turns if turn.action.startswith("echo ")}
    assert {turn.num_changed for episode in explorations for turn in episode.turns} == {None}
    assert all(episode.held_out for episode in episodes)
    texts = [episode.model_dump_json() for episode in episodes]
    assert any(has_unseen_word(text) for text in texts)
    assert not any(has_unseen_word(episode.model_dump_json()) for episode in explorations)


@pytest.mark.waits
def test_record_state_adds_only_the_state_to_each_turn(explorations):
    (episode,) = explore(RANDOM.model_copy(update={"record_state": True}), [0])
    assert all(turn.state is not None for turn in episode.turns)
    assert any(turn.state for turn in episode.turns)
    assert {turn.state for exploration in explorations for turn in exploration.turns} == {None}
    pairs = [(turn.action, turn.observation) for turn in explorations[0].turns]
    assert [(turn.action, turn.observation) for turn in episode.turns] == pairs


@pytest.mark.waits
def test_an_episode_with_a_broken_sandbox_is_left_out_and_the_next_is_unaffected(
    explorations, break_shells
):
    break_shells({8})
    assert explore(RANDOM, range(3)) == [explorations[0], explorations[2]]


@pytest.mark.waits
def test_the_exploration_fails_if_every_sandbox_breaks(break_shells):
    break_shells(range(99))
    with pytest.raises(EnvironmentBroken, match="every episode"):
        explore(RECIPE, range(3))


@pytest.mark.waits
def test_a_turn_that_differs_in_a_fresh_shell_has_the_history_tag(explorations):
    """The counterfactual: a turn without a dependency shows the same in a fresh episode."""
    with LiveShell(seconds=60) as shell:
        for episode in explorations:
            all_tags = tags_of(episode.initial_state, episode.turns)
            for turn, tags in zip(episode.turns, all_tags, strict=True):
                shell.reset(parse_files(episode.initial_state))
                is_same = shell.step(turn.action) == turn.observation
                assert is_same or HISTORY in tags


def explore_text(monkeypatch, answer, **fields):
    """The only episode of a scripted text domain, and its environment."""
    domain = ScriptedDomain(answer)
    registered(monkeypatch, "text", domain)
    recipe = RECIPE.model_copy(update={"domain": "text", "task_share": 0, **fields})
    (episode,) = explore(recipe, [0])
    return episode, domain.environments[0]


def test_an_environment_may_end_its_episode_itself(monkeypatch):
    episode, environment = explore_text(
        monkeypatch, lambda action: Observation(f"after {action}", done=action == "action 3")
    )
    assert [turn.observation for turn in episode.turns] == [
        *("after action 1", "after action 2", "after action 3")
    ]
    assert (episode.domain, environment.num_steps, environment.is_open) == ("text", 3, False)


@pytest.mark.parametrize(("task_share", "num_turns"), [(1, 1), (0, 6)])
def test_a_closing_action_ends_only_an_episode_that_pursues_the_task(
    monkeypatch, task_share, num_turns
):
    task = records.task(domain="text", success={"closing": "action 1", "output": "yes"})
    monkeypatch.setattr(ScriptedDomain, "task", lambda *_, **__: task)
    episode, _ = explore_text(monkeypatch, Observation, task_share=task_share)
    assert len(episode.turns) == num_turns
    assert episode.task == (task if task_share else None)
    assert episode.initial_state == task.initial_state


def test_the_state_is_read_after_each_step(monkeypatch):
    episode, _ = explore_text(monkeypatch, Observation, record_state=True, turns_per_episode=2)
    assert [turn.state for turn in episode.turns] == ["1 steps", "2 steps"]


@pytest.mark.parametrize(
    ("domain", "problem"),
    [(None, "names neither collect.domain"), ("text", "no domain with an environment")],
)
def test_a_recipe_without_environments_is_refused(domain, problem):
    with pytest.raises(InputError, match=problem):
        explore(RECIPE.model_copy(update={"domain": domain}), [0])
