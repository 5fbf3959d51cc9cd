"""Logs of a counter: a line `add 3 -> now 5` for each turn, an empty line between episodes."""

from agentworld.records.base import digest_file
from agentworld.records.trajectory import Trajectory, Turn


class CounterLog:
    def digest(self, source):
        return digest_file(source)

    def read(self, source):
        for episode in source.read_text().split("\n\n"):
            pairs = [line.split(" -> ") for line in episode.splitlines()]
            turns = tuple(Turn(action=action, observation=f"{seen}\n") for action, seen in pairs)
            yield Trajectory(domain="counter", source="log", initial_state="at 0", turns=turns)


IMPORTER = CounterLog()
