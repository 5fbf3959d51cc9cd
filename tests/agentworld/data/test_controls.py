import pytest

from agentworld.data.samples import make_sample
from agentworld.recipes.data import MaskRecipe, PrepareRecipe
from agentworld.rendering.messages import system_text
from make import records

RECIPE = PrepareRecipe(control_share=1, mask=MaskRecipe(echo=0, boilerplate=1))
FAILURE = ("open b.txt", "Error: no b.txt here\nsee help")
OUTPUT = ("look", "\n{\n3 apples\n4 pears")


def instruction(*turns, domain="text", pool="sft", recipe=RECIPE, number=0):
    trajectory = records.trajectory(*turns, domain=domain)
    sample = make_sample(recipe, trajectory, records.digest(f"{number}"), pool)
    return sample.prompt.simulation_instruction


def test_an_instruction_describes_the_recorded_outcomes():
    assert instruction(OUTPUT, FAILURE).split("\n") == [
        "Action 1, look, shows the line: 3 apples",
        "Action 2, open b.txt, fails. Its observation has the line: Error: no b.txt here",
    ]


def test_an_instruction_of_a_shell_depends_on_exit_status_and_output():
    turns = ("cat b.txt", "cat: b.txt: missing\n[1] ~"), ("mkdir a", "[0] ~"), ("ls", "a\n[0] ~")
    assert instruction(*turns, domain="shell").split("\n") == [
        "Action 1, cat b.txt, fails. Its observation has the line: cat: b.txt: missing",
        "Action 2, mkdir a, shows no output.",
        "Action 3, ls, shows the line: a",
    ]


def test_an_instruction_describes_at_most_three_turns_and_prefers_failures():
    turns = [(f"look {number}", f"{number} apples of many") for number in range(9)]
    lines = instruction(*turns, FAILURE).split("\n")
    assert len(lines) == 3
    assert lines[-1].startswith("Action 10, open b.txt, fails.")


def test_a_turn_without_loss_has_no_instruction():
    echo = ("say kolu tane besa", "say kolu tane besa")
    assert instruction(echo, OUTPUT) == "Action 2, look, shows the line: 3 apples"


@pytest.mark.parametrize("number", range(6))
def test_an_rl_instruction_describes_only_the_predicted_turn(number):
    trajectory = records.trajectory(OUTPUT, FAILURE, OUTPUT, domain="text")
    sample = make_sample(RECIPE, trajectory, records.digest(f"{number}"), "rl")
    (target,) = sample.targets
    assert sample.prompt.simulation_instruction.startswith(f"Action {target + 1},")
    assert "\n" not in sample.prompt.simulation_instruction


def test_a_held_out_sample_has_no_instruction():
    assert instruction(OUTPUT, FAILURE, pool="held_out") == ""


def test_the_recipes_share_of_the_trajectories_has_an_instruction():
    recipe = PrepareRecipe(control_share=0.25)
    texts = [instruction(OUTPUT, FAILURE, recipe=recipe, number=number) for number in range(400)]
    assert sum(map(bool, texts)) / 400 == pytest.approx(0.25, abs=0.07)
    repeated_texts = [
        instruction(OUTPUT, FAILURE, recipe=recipe, number=number) for number in range(400)
    ]
    assert repeated_texts == texts


def test_the_instruction_is_last_in_the_prompt():
    trajectory = records.trajectory(OUTPUT, domain="text", initial_state="a shop")
    sample = make_sample(RECIPE, trajectory, records.digest("1"), "cpt")
    assert system_text(sample.prompt).split("\n")[-2:] == [
        "a shop",
        "Action 1, look, shows the line: 3 apples",
    ]


def test_long_lines_are_cut():
    text = instruction(("look\nagain", "a" * 1_000))
    assert text == f"Action 1, look, shows the line: {'a' * 160}..."
