"""The texts in the benchmark of a real engine: fixed, and the same for both sides.

The counting model gives every action the same response, so each prompt depends only on the number
of its episode and its turn.
"""

from agentworld.records.message import Message
from agentworld.records.trajectory import Turn
from agentworld.rendering.messages import world_messages
from benchmarks.counting_model import ANSWER
from make.records import shell_prompt

TURNS = 8


def start(number: int) -> str:
    """An episode's initial state: long, and different from all others from its first word on."""
    return "\n".join(f"{number:03}-{file}.txt: kolu tane" for file in range(20))


def action(turn: int) -> str:
    return f"cat {turn}.txt"


def messages(number: int, turn: int) -> list[Message]:
    """The engine's input in a turn, counted from 0."""
    turns = [Turn(action=action(earlier), observation=ANSWER) for earlier in range(turn)]
    return world_messages(shell_prompt(start(number)), turns, action(turn))


def answered(number: int, turn: int) -> list[Message]:
    """The same with the engine's response."""
    return [*messages(number, turn), Message(role="assistant", content=ANSWER)]
