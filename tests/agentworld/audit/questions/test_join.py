"""Two logs of the same steps, with steps lost or changed in one of them."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import make.service
from agentworld.audit.questions.join import JoinReport, join_run
from agentworld.client.trajectory import TrajectoryLog, read_trajectory
from agentworld.records.episode import Episode, EpisodeOpening, Source
from agentworld.records.run import AgentRun
from agentworld.records.trajectory_log import TornLine, TrajectoryBegin
from make import records

RUN = AgentRun(id="r", opening=make.service.OPENING, simulator=records.digest("s"))
OTHER = records.digest("other")


def build_episode(name: str, *observations: str) -> Episode:
    base = Episode.new(name, RUN.simulator, EpisodeOpening(run=RUN.id))
    return records.episode(*observations, base=base)


EPISODES = [build_episode("a", "1", "2"), build_episode("b", "3", "4", "5"), build_episode("c")]
LINES = [records.acted(episode, step.number) for episode in EPISODES for step in episode.steps]


def counts(report: JoinReport) -> dict[str, int]:
    """The counts that are not 0."""
    values = report.model_dump(include={name for name in JoinReport.model_fields if "num" in name})
    return {name.removeprefix("num_"): number for name, number in values.items() if number}


def test_two_complete_logs_match():
    report = join_run(RUN, EPISODES, LINES)
    assert counts(report) == {"matched": 5}
    assert report.examples == ()
    assert not report.is_alarm


def test_a_step_missing_from_the_agents_log_is_counted_without_an_alarm():
    report = join_run(RUN, EPISODES, [LINES[0], *LINES[2:]])
    assert counts(report) == {"matched": 4, "only_in_ledger": 1}
    assert report.examples == ("step 2 of episode a: only in ledger",)
    assert not report.is_alarm


def test_a_step_missing_from_the_ledger_raises_an_alarm():
    report = join_run(RUN, [EPISODES[1]], LINES)
    assert counts(report) == {"matched": 3, "only_in_trajectory": 2}
    assert report.is_alarm


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({"action": "pwd"}, "other_action"),
        ({"observation_digest": OTHER}, "other_observation"),
        ({"reward": 1.0}, "other_reward"),
        ({"simulator": OTHER}, "other_simulator"),
        ({"low_confidence": True}, "other_confidence"),
    ],
)
def test_a_step_that_differs_between_both_logs_raises_an_alarm(change, count):
    report = join_run(RUN, EPISODES, [LINES[0]._replace(**change), *LINES[1:]])
    assert counts(report) == {"matched": 4, count: 1}
    assert report.examples == (f"step 1 of episode a: {count.replace('_', ' ')}",)
    assert report.is_alarm


def test_lines_of_other_runs_and_lines_without_a_step_are_skipped():
    begin = TrajectoryBegin("r", "a", RUN.simulator, 0, None)
    other_line = LINES[0]._replace(run="other", episode="z")
    assert counts(join_run(RUN, EPISODES, [begin, *LINES, other_line])) == {"matched": 5}


def test_torn_lines_are_counted():
    report = join_run(RUN, EPISODES, [*LINES, TornLine("a.jsonl", 7)])
    assert counts(report) == {"matched": 5, "torn": 1}
    assert not report.is_alarm


def test_an_erased_episode_still_matches():
    erased_episodes = [
        episode._replace(
            steps=tuple(step._replace(action=None, observation=None) for step in episode.steps)
        )
        for episode in EPISODES
    ]
    assert counts(join_run(RUN, erased_episodes, LINES)) == {"matched": 5}


def test_the_report_shows_at_most_20_examples():
    report = join_run(RUN, [build_episode("long", *map(str, range(100)))], [])
    assert report.num_only_in_ledger == 100
    assert len(report.examples) == 20


FATES = st.sampled_from(["both", "ledger", "trajectory", "twice", "changed", "changed twice"])


@pytest.mark.waits
@given(st.lists(st.tuples(st.sampled_from("abc"), FATES), max_size=12), st.randoms())
def test_every_step_is_counted_once_in_any_state_and_order(steps, random):
    episodes, lines, fates = [], [], Counter(fate for _, fate in steps)
    for number, (name, fate) in enumerate(steps):
        episode = build_episode(f"{name}{number}", "shown")
        line = records.acted(episode, 1)
        episodes += [] if fate == "trajectory" else [episode]
        lines += {"both": [line], "ledger": [], "trajectory": [line], "twice": [line] * 2}.get(
            fate, [line._replace(action="pwd")]
        )
        lines += [line] if fate == "changed twice" else []
    random.shuffle(episodes)
    random.shuffle(lines)
    report = join_run(RUN, episodes, iter(lines))
    assert report.num_matched == fates["both"] + fates["twice"]
    assert report.num_only_in_ledger == fates["ledger"]
    assert report.num_only_in_trajectory == fates["trajectory"]
    assert report.num_other_action == fates["changed"] + fates["changed twice"]
    assert report.num_repeated == fates["twice"] + fates["changed twice"]


def test_a_served_run_with_a_fork_matches_its_agents_log(tmp_path):
    service = make.service.service(tmp_path)

    async def work():
        with TrajectoryLog(tmp_path / "log") as trajectory:
            client = service.client(trajectory=trajectory)
            source = await make.service.play(client, "echo \x00", "echo \ud800", "pwd")
            run = client.run.id
            fork = {"fork": Source(episode=source, step=2)}
            await make.service.play(client, "ls", run=run, **fork)
            return run

    ledger, run = service.ledger, asyncio.run(work())
    report = join_run(ledger.run(run), ledger.episodes(run), read_trajectory(tmp_path / "log"))
    assert counts(report) == {"matched": 4}
