"""The counts of a data set's preparation."""

from agentworld.data.summary import Summary
from make import records

EPISODES = [
    records.trajectory(("ls", "[0] ~"), seed=0, source="a", licence="MIT"),
    records.trajectory(("ls", ""), ("cat x", "12345678"), seed=1, source="b"),
    records.trajectory(("ls", "1"), seed=2, source="b"),
]


def summary_of(trajectories):
    summary = Summary()
    for trajectory in summary.read(trajectories):
        summary.add(trajectory)
    return summary


def test_trajectories_are_counted_by_domain_source_and_licence():
    fields = summary_of(EPISODES).fields()
    assert fields["num_read"] == 3
    assert fields["domains"] == {"shell": 3}
    assert fields["sources"] == {"a": 1, "b": 2}
    assert fields["licences"] == {"MIT": 1, "unstated": 2}


def test_lengths_are_counted_by_their_binary_digits():
    lengths = summary_of(EPISODES).fields()["lengths"]
    assert lengths.turns == (0, 2, 1)
    assert lengths.action == (0, 0, 3, 1)
    assert lengths.observation == (1, 1, 0, 1, 1)


def test_parts_that_were_counted_apart_add_up_to_the_whole():
    first, second = summary_of(EPISODES[:1]), summary_of(EPISODES[1:])
    first.merge(second)
    assert first.fields() == summary_of(EPISODES).fields()


def test_a_summary_of_nothing_has_no_lengths():
    assert Summary().fields()["lengths"].turns == ()
