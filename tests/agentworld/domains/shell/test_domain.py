import pytest

from agentworld.domains.base import (
    HISTORY,
    OUTPUT,
    Action,
    ActionError,
    Call,
    Start,
    domain_of,
    is_match,
)
from agentworld.domains.words import held_out_words
from agentworld.records.trajectory import Turn

SHELL = domain_of("shell")


@pytest.mark.parametrize(
    ("predicted", "is_equal"),
    [
        ("kolu\n[0] ~", True),
        ("kolu\n[0] ~\n", True),
        ("kolu \n[0] ~", False),
        ("kolu\n[1] ~", False),
        ("kolu\n\n[0] ~", False),
        ("", False),
    ],
)
def test_every_character_of_an_observation_counts(predicted, is_equal):
    assert is_match(SHELL, predicted, "kolu\n[0] ~") is is_equal


def test_an_empty_line_at_either_end_of_an_observation_does_not_count():
    assert is_match(SHELL, "kolu\n[0] ~", "\nkolu\n[0] ~")
    assert is_match(SHELL, "kolu\n[0] ~\n\n", "kolu\n[0] ~")


@pytest.mark.parametrize("text", ["ls", " ls ", "\n ls \nand then I am done"])
def test_an_action_is_the_first_line_of_the_policy_output(text):
    assert SHELL.parse_action(text) == "ls"


@pytest.mark.parametrize("text", ["", "  \n", "\t"])
def test_a_policy_that_wrote_no_command_has_no_action(text):
    with pytest.raises(ActionError, match="wrote no command"):
        SHELL.parse_action(text)


def test_a_call_of_bash_is_its_command_and_any_other_call_is_json():
    assert SHELL.render_action(Action("ls")) == "ls"
    bash = Call("bash", {"command": "ls"})
    assert SHELL.render_action(Action("", (bash,))) == "ls"
    assert SHELL.render_action(Action("", (bash, bash))).count('{"name":"bash"') == 2
    timed_call = Call("bash", {"command": "ls", "timeout": 1})
    assert SHELL.render_action(Action("", (timed_call,))).startswith('{"name":"bash","arguments":{')


def test_prompt_variants_differ_in_wording_and_contain_the_start():
    start = Start(domain="shell", text="rimo.txt: kolu")
    prompts = {SHELL.prompt(start, variant).model_dump_json() for variant in range(12)}
    assert len(prompts) == 12
    assert all(SHELL.prompt(start, variant).initial_state == start.text for variant in range(12))
    assert [*SHELL.variants("cpt")] == [1]
    assert [*SHELL.variants("sft")] == [*range(2, 12)]
    assert [*SHELL.variants("rl")] == [*SHELL.variants("held_out")] == [0]


def test_a_thought_contains_the_files_that_the_action_names():
    state = "besa/lomi.txt: gudo\nrimo.txt: kolu / tane"
    assert SHELL.thought(state, "cat rimo.txt") == "rimo.txt: kolu / tane"
    assert SHELL.thought(state, "cat lomi.txt") == "besa/lomi.txt: gudo"
    assert SHELL.thought(state, "grep -l kolu *") == state
    assert SHELL.thought(state, "pwd") == SHELL.thought("", "cat rimo.txt") == "none"


def test_a_question_is_the_first_step_of_a_held_out_task():
    questions = [SHELL.question(number) for number in range(30)]
    assert questions == [SHELL.question(number) for number in range(30)]
    assert {question.start.domain for question in questions} == {"shell"}
    texts = [f"{question.start.text} {question.action}" for question in questions]
    assert any(SHELL.has_unseen(text) for text in texts)


def test_tags_depend_on_the_start_and_the_previous_turns():
    turns = [
        Turn(action="rm rimo.txt", observation="[0] ~"),
        Turn(action="ls", observation="a\n[0] ~"),
    ]
    start = Start(domain="shell", text="rimo.txt: kolu")
    assert SHELL.tags(start, turns) == [{"rm"}, {"ls", HISTORY, OUTPUT}]


def test_only_held_out_words_are_unseen():
    assert SHELL.has_unseen(f"cat {held_out_words()[0]}.txt")
    assert not SHELL.has_unseen("cat a.txt")


def test_a_repeated_unknown_command_is_not_kept():
    failure = Turn(action="kolu", observation="bash: kolu: command not found\n[127] ~")
    ls = Turn(action="ls", observation="[0] ~")
    assert SHELL.keep([failure, failure, ls, ls, failure]) == [True, False, True, True, True]
    assert SHELL.keep([]) == []
