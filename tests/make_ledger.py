"""What is written into a ledger, without a service."""

import uuid

import make
from agentworld.ledger.writes import Closed, Opened, Taken
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import RunClosing, RunOpening

SIMULATOR = make.digest("simulator")
OPENING = RunOpening(agent="terminal-agent", starting_weights=make.digest("starting"))


def closing(name="final"):
    return RunClosing(final_weights=make.digest(name))


def open_episode(ledger, run=None, simulator=SIMULATOR, **opening):
    run = run or ledger.open_run(OPENING, SIMULATOR).id
    episode = Episode.begun(uuid.uuid4().hex, simulator, EpisodeOpening(run=run, **opening))
    ledger.write([Opened(episode)])
    return episode


def steps(episode, *observations):
    """Steps that are linked to each other, the first one to the episode's start."""
    return make.episode(*observations, base=episode).steps


def taken(episode, *observations):
    return [Taken(episode.run, step) for step in steps(episode, *observations)]


def end(episode, num_steps=0, reason="closed"):
    return Closed(episode.run, episode.id, num_steps, episode.head, reason)
