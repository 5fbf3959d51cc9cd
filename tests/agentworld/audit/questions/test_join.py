"""Two logs of the same steps, and what is lost or changed in one of them."""

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


def episode(name: str, *observations: str) -> Episode:
    begun = Episode.new(name, RUN.simulator, EpisodeOpening(run=RUN.id))
    return records.episode(*observations, base=begun)


EPISODES = [episode("a", "1", "2"), episode("b", "3", "4", "5"), episode("c")]
ACTED = [records.acted(each, step.number) for each in EPISODES for step in each.steps]


def counts(report: JoinReport) -> dict[str, int]:
    """Those that are not 0."""
    told = report.model_dump(include={name for name in JoinReport.model_fields if "num" in name})
    return {name.removeprefix("num_"): number for name, number in told.items() if number}


def test_two_complete_logs_match():
    report = join_run(RUN, EPISODES, ACTED)
    assert counts(report) == {"matched": 5}
    assert report.examples == ()
    assert not report.is_alarm


def test_a_step_missing_from_the_agents_log_is_counted_without_an_alarm():
    report = join_run(RUN, EPISODES, [ACTED[0], *ACTED[2:]])
    assert counts(report) == {"matched": 4, "only_in_ledger": 1}
    assert report.examples == ("step 2 of episode a: only in ledger",)
    assert not report.is_alarm


def test_a_step_missing_from_the_ledger_raises_an_alarm():
    report = join_run(RUN, [EPISODES[1]], ACTED)
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
    report = join_run(RUN, EPISODES, [ACTED[0]._replace(**change), *ACTED[1:]])
    assert counts(report) == {"matched": 4, count: 1}
    assert report.examples == (f"step 1 of episode a: {count.replace('_', ' ')}",)
    assert report.is_alarm


def test_lines_of_other_runs_and_lines_without_a_step_are_skipped():
    begin = TrajectoryBegin("r", "a", RUN.simulator, 0, None)
    other = ACTED[0]._replace(run="other", episode="z")
    assert counts(join_run(RUN, EPISODES, [begin, *ACTED, other])) == {"matched": 5}


def test_torn_lines_are_counted():
    report = join_run(RUN, EPISODES, [*ACTED, TornLine("a.jsonl", 7)])
    assert counts(report) == {"matched": 5, "torn": 1}
    assert not report.is_alarm


def test_an_erased_episode_still_matches():
    erased = [
        each._replace(
            steps=tuple(step._replace(action=None, observation=None) for step in each.steps)
        )
        for each in EPISODES
    ]
    assert counts(join_run(RUN, erased, ACTED)) == {"matched": 5}


def test_the_report_shows_at_most_20_examples():
    report = join_run(RUN, [episode("long", *map(str, range(100)))], [])
    assert report.num_only_in_ledger == 100
    assert len(report.examples) == 20


FATES = st.sampled_from(["both", "ledger", "trajectory", "twice", "changed", "changed twice"])


@pytest.mark.waits
@given(st.lists(st.tuples(st.sampled_from("abc"), FATES), max_size=12), st.randoms())
def test_every_step_is_counted_once_in_any_state_and_order(steps, random):
    told, acted, fates = [], [], Counter(fate for _, fate in steps)
    for place, (name, fate) in enumerate(steps):
        whole = episode(f"{name}{place}", "shown")
        agent = records.acted(whole, 1)
        told += [] if fate == "trajectory" else [whole]
        acted += {"both": [agent], "ledger": [], "trajectory": [agent], "twice": [agent] * 2}.get(
            fate, [agent._replace(action="pwd")]
        )
        acted += [agent] if fate == "changed twice" else []
    random.shuffle(told)
    random.shuffle(acted)
    report = join_run(RUN, told, iter(acted))
    assert report.num_matched == fates["both"] + fates["twice"]
    assert report.num_only_in_ledger == fates["ledger"]
    assert report.num_only_in_trajectory == fates["trajectory"]
    assert report.num_other_action == fates["changed"] + fates["changed twice"]
    assert report.num_repeated == fates["twice"] + fates["changed twice"]


def test_a_served_run_with_a_fork_matches_its_agents_log(tmp_path):
    served = make.service.service(tmp_path)

    async def work():
        with TrajectoryLog(tmp_path / "log") as trajectory:
            client = served.client(trajectory=trajectory)
            first = await make.service.play(client, "echo \x00", "echo \ud800", "pwd")
            run = client.run.id
            fork = {"fork": Source(episode=first, step=2)}
            await make.service.play(client, "ls", run=run, **fork)
            return run

    ledger, run = served.ledger, asyncio.run(work())
    report = join_run(ledger.run(run), ledger.episodes(run), read_trajectory(tmp_path / "log"))
    assert counts(report) == {"matched": 4}
