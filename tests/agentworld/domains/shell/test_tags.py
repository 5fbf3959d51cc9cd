import pytest

from agentworld.domains.base import HISTORY, OUTPUT, UNSEEN
from agentworld.domains.shell.tags import tags_of
from agentworld.domains.words import held_out_words, training_words
from agentworld.records.trajectory import Turn

START = "rimo.txt: kolu / tane\nbesa/lomi.txt: gudo"


def depends(*actions, start=START):
    """Whether the last action depends on the previous actions; `!` marks a failed action."""
    turns, folder = [], "~"
    for text in actions:
        status = 1 if text.startswith("!") else 0
        action = text.removeprefix("!")
        if action.startswith("cd ") and not status:
            folder = "~" if action == "cd .." else f"~/{action.removeprefix('cd ')}"
        turns.append(Turn(action=action, observation=f"[{status}] {folder}"))
    return HISTORY in tags_of(start, turns)[-1]


@pytest.mark.parametrize(
    "actions",
    [
        ["echo a > new.txt", "cat new.txt"],
        ["echo a >> rimo.txt", "cat rimo.txt"],
        ["echo a > besa/lomi.txt", "head -n 1 besa/lomi.txt"],
        ["rm rimo.txt", "!cat rimo.txt"],
        ["rm rimo.txt", "ls"],
        ["rm -r besa", "!cat besa/lomi.txt"],
        ["rm -r besa", "!cd besa"],
        ["mkdir new", "cd new"],
        ["mkdir new", "!mkdir new"],
        ["mkdir -p a/b", "ls a"],
        ["mkdir new", "echo a > new/b.txt"],
        ["touch new.txt", "test -f new.txt && echo yes"],
        ["cp rimo.txt new.txt", "cat new.txt | grep kolu"],
        ["cp rimo.txt besa", "cat besa/rimo.txt"],
        ["mv rimo.txt new.txt", "!wc -l < rimo.txt"],
        ["mv rimo.txt new.txt", "ls | wc -l"],
        ["mv besa new", "cat new/lomi.txt"],
        ["echo a >> rimo.txt", "grep -l kolu *"],
        ["touch new.txt", "grep -l kolu *"],
        ["export A=kolu", "echo $A"],
        ["export A=kolu", "echo ${A}"],
        ["ls", "echo $?"],
        ["cd besa", "pwd"],
        ["cd besa", "cat lomi.txt"],
        ["cd besa", "cd .."],
        ["cd besa", "echo kolu"],
    ],
    ids=" ; ".join,
)
def test_a_turn_that_depends_on_an_earlier_change_is_tagged_as_history(actions):
    assert depends(*actions)


@pytest.mark.parametrize(
    "actions",
    [
        ["cat rimo.txt"],
        ["echo $?"],
        ["pwd"],
        ["ls", "cat rimo.txt"],
        ["echo a > new.txt", "cat rimo.txt"],
        ["echo a > new.txt", "echo a > new.txt"],
        ["echo a >> rimo.txt", "ls"],
        ["echo a > besa/new.txt", "ls"],
        ["touch rimo.txt", "cat rimo.txt"],
        ["!echo a > none/new.txt", "!cat none/new.txt"],
        ["!rm none.txt", "!cat none.txt"],
        ["!cp none.txt new.txt", "!cat new.txt"],
        ["export A=kolu", "echo $B"],
        ["export A=kolu", "echo A"],
        ["cd besa", "cd ..", "pwd"],
        ["mkdir new", "cat besa/lomi.txt"],
        ["echo a > rimo.txt", "grep rimo.txt besa/lomi.txt"],
        ["echo a > new.txt", "kolu new.txt"],
        ["echo a > new.txt", "cat 'new.txt"],
    ],
    ids=" ; ".join,
)
def test_a_turn_independent_of_earlier_changes_is_not_tagged_as_history(actions):
    assert not depends(*actions)


def test_a_turn_with_only_a_prompt_line_has_no_output_tag():
    turns = [Turn(action="ls", observation=screen) for screen in ("[0] ~", "a\n[0] ~", "\n[0] ~")]
    assert [OUTPUT in tags for tags in tags_of("", turns)] == [False, True, True]


def test_each_turn_has_the_class_of_its_command():
    actions = ["ls", "echo a > b", "cat b | wc -l", "kolu", "echo 'open"]
    turns = [Turn(action=action, observation="[0] ~") for action in actions]
    classes = [tags - {HISTORY, OUTPUT, UNSEEN} for tags in tags_of("", turns)]
    assert classes == [{"ls"}, {"write"}, {"pipe"}, {"unknown"}, {"other"}]


@pytest.mark.parametrize(
    ("action", "observation", "is_unseen"),
    [
        ("cat {kept}.txt", "[1] ~", True),
        ("ls", "{kept}\n[0] ~", True),
        ("ls", "[0] ~/{kept}", True),
        ("cat {known}.txt", "{known}\n[0] ~", False),
        ("cat {kept}x.txt", "x{kept}\n[0] ~", False),
    ],
    ids=["action", "output", "folder", "known words", "a part of a word"],
)
def test_an_unseen_word_is_a_whole_word_anywhere_in_a_turn(action, observation, is_unseen):
    held_out_word, training_word = held_out_words()[3], training_words()[3]
    turn = Turn(
        action=action.format(kept=held_out_word, known=training_word),
        observation=observation.format(kept=held_out_word, known=training_word),
    )
    assert (UNSEEN in tags_of("", [turn])[0]) is is_unseen
