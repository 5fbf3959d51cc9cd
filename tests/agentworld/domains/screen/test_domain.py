from agentworld.domains.base import Start, domain_of, is_match
from agentworld.rendering.messages import system_text

SCREEN = domain_of("screen")


def test_the_prompt_describes_an_observation_as_the_whole_screen():
    prompt = SCREEN.prompt(Start(domain="screen", text="[1] Home"))
    assert system_text(prompt) == (
        "Predict what the environment shows for each action."
        " An observation is the whole screen after the action.\n[1] Home"
    )


def test_line_breaks_do_not_affect_the_match_of_screens():
    assert is_match(SCREEN, "[1] Shop\n  [2] Buy", "[1] Shop [2] Buy\n")
    assert not is_match(SCREEN, "[1] Shop\n[2] Buy", "[1] Shop\n[2] Sell")


def test_screen_questions_are_of_the_screen_domain():
    assert {SCREEN.question(number).start.domain for number in range(5)} == {"screen"}
