from collections import Counter
from random import Random

from agentworld.domains.base import domain_of
from agentworld.domains.live import live_domain
from agentworld.domains.terminal.tags import keys_of
from agentworld.domains.terminal.tasks import solved_task
from agentworld.domains.words import has_unseen_word

LIVE = live_domain("terminal")
TASKS = [solved_task(seed, held_out=False) for seed in range(60)]


def explore(seed, pursues_task, num_turns=40):
    task = LIVE.task(seed, held_out=False, has_goal=pursues_task)
    start = domain_of("terminal").question(0).start
    explorer = LIVE.explorer(
        Random(seed), start, task, held_out=False, pursues_task=pursues_task, num_turns=num_turns
    )
    return list(iter(lambda: explorer.act(None), None))


def test_a_seed_has_one_task_and_there_are_seven_families():
    assert [solved_task(seed, held_out=False) for seed in range(60)] == TASKS
    assert len(Counter(solved.task.family for solved in TASKS)) == 7
    assert len({solved.task.id for solved in TASKS}) == 60


def test_only_held_out_tasks_contain_held_out_words():
    texts = [f"{solved.task.instruction} {solved.task.initial_state}" for solved in TASKS]
    assert not any(map(has_unseen_word, texts))
    held_out_texts = [solved_task(seed, held_out=True).task.instruction for seed in range(60)]
    assert any(map(has_unseen_word, held_out_texts))


def test_no_initial_state_already_satisfies_its_task():
    assert all(solved.task.initial_state != solved.task.success.state for solved in TASKS)


def test_explorers_are_deterministic_and_few_of_their_actions_are_malformed():
    actions = [action for seed in range(20) for action in explore(seed, seed % 2 == 0)]
    assert actions == [action for seed in range(20) for action in explore(seed, seed % 2 == 0)]
    malformed_actions = [action for action in actions if keys_of(action) is None]
    assert 0 < len(malformed_actions) < len(actions) / 20


def test_an_explorer_without_a_task_opens_programs_and_leaves_them():
    keystrokes = "".join(
        keys.keystrokes
        for seed in range(20)
        for action in explore(seed, False)
        for keys in keys_of(action) or ()
    )
    assert all(word in keystrokes for word in ("python3 -q\n", "less ", "vi ", "sleep 30\n", "C-d"))


def test_an_explorer_takes_exactly_the_allowed_turns():
    assert len(explore(1, False, num_turns=3)) == 3
