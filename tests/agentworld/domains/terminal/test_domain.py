import json

import pytest

from agentworld.domains.base import HISTORY, OUTPUT, UNSEEN, ActionError, Start, domain_of
from agentworld.domains.terminal.keys import refusal
from agentworld.domains.terminal.tags import FAILURE, INSIDE, KEY, MALFORMED, WAIT
from agentworld.domains.terminal.tasks import solved_task
from agentworld.domains.words import held_out_words
from agentworld.records.trajectory import Turn

TERMINAL = domain_of("terminal")
START = Start(domain="terminal", text="rimo.txt: kolu")
PROMPT = "agent@world:~$"


def keys(*texts):
    return json.dumps([{"keystrokes": text, "duration": 1.0} for text in texts])


def tags(*turns):
    return TERMINAL.tags(START, [Turn(action=action, observation=text) for action, text in turns])


def test_every_prompt_variant_describes_the_keys_and_the_files():
    prompts = [TERMINAL.prompt(START, variant) for variant in range(12)]
    assert len({prompt.task_description for prompt in prompts}) == 12
    assert all("keystrokes" in prompt.action_space for prompt in prompts)
    assert {prompt.initial_state for prompt in prompts} == {"rimo.txt: kolu"}


def test_turns_are_tagged_by_their_keys_and_their_screens():
    first = f"{PROMPT} echo tane > a.txt\n{PROMPT}"
    second = f"{first} cat a.txt\ntane\n{PROMPT}"
    third = f"{second} cat\n"
    turn_tags = tags(
        (keys("echo tane > a.txt\n"), first),
        (keys("cat a.txt\n"), second),
        (keys("cat\n"), third),
        (keys(""), third),
        (keys("C-c"), f"{third}^C\n{PROMPT}"),
        ("ls", refusal(ActionError("it is no JSON"))),
    )
    assert [set(tags_of_turn) for tags_of_turn in turn_tags] == [
        set(),
        {OUTPUT, HISTORY},
        {INSIDE},
        {INSIDE, WAIT},
        {KEY},
        {OUTPUT, FAILURE, MALFORMED},
    ]


def test_a_turn_with_a_held_out_word_is_tagged_as_unseen():
    word = held_out_words()[0]
    assert UNSEEN in tags((keys(f"echo {word}\n"), PROMPT))[0]
    assert TERMINAL.has_unseen(word)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("cat a.txt\n",), "read"),
        (("echo x > a.txt\n",), "write"),
        (("cat a.txt\n", "rm a.txt\n"), "write"),
        (("C-c",), None),
    ],
)
def test_the_kind_of_a_turn_is_that_of_its_commands(texts, kind):
    assert TERMINAL.turn_kind(keys(*texts)) == kind


def test_the_closing_keys_succeed_if_the_screen_shows_the_expected_output():
    solved = solved_task(3, held_out=False)
    action, rule = solved.steps[-1], solved.task.success
    (command,) = json.loads(action)
    screen = f"{PROMPT} {command['keystrokes']}{rule.output}\n{PROMPT}"
    assert TERMINAL.outcome(solved.task, action, screen) is True
    assert TERMINAL.outcome(solved.task, action, screen.replace(rule.output, "x")) is False
    assert TERMINAL.outcome(solved.task, keys("ls\n"), screen) is None
    assert TERMINAL.outcome(solved.task, "ls", screen) is None


def test_a_screen_is_scored_by_its_lines_its_prompt_and_its_size():
    truth = f"{PROMPT} cat a\nkolu\n{PROMPT}"
    score = TERMINAL.rubric.score_by_rules
    assert score(truth, truth).mean == 5
    assert score(f"{PROMPT} cat a\nkolu\n>>>", truth).format == 3
    assert score(f"{PROMPT} cat a\nkolu\nagent@world:~/b$", truth).consistency == 1
    assert score("x\n" * 41 + "x", truth).format == 1
    assert score(f"{PROMPT} cat a\ntane\n{PROMPT}", truth).factuality < 5
