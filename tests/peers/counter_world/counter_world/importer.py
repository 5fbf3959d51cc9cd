"""Logs of a counter: a line `add 3 -> now 5` for each turn, an empty line between episodes."""

from agentworld.data.importers import ImportOptions, ImportResult
from agentworld.records.trajectory import Trajectory, Turn


class CounterLog:
    options = ImportOptions

    def claims(self, value):
        return False

    def read(self, file, options, domain):
        with file.open() as stream:
            episodes = stream.read().decode().split("\n\n")
        for number, episode in enumerate(episodes):
            pairs = [line.split(" -> ") for line in episode.splitlines()]
            turns = tuple(Turn(action=action, observation=f"{seen}\n") for action, seen in pairs)
            log = Trajectory(domain="counter", source="log", initial_state="at 0", turns=turns)
            yield ImportResult(f"episode {number}", log)


IMPORTER = CounterLog()
