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


def test_trajectories_are_counted_by_domain_source_and_license():
    fields = summary_of(EPISODES).fields()
    assert fields["num_read"] == 3
    assert fields["domains"] == {"shell": 3}
    assert fields["sources"] == {"a": 1, "b": 2}
    assert fields["licences"] == {"MIT": 1, "unstated": 2}


def test_lengths_are_counted_by_their_number_of_binary_digits():
    lengths = summary_of(EPISODES).fields()["lengths"]
    assert lengths.turns == (0, 2, 1)
    assert lengths.action == (0, 0, 3, 1)
    assert lengths.observation == (1, 1, 0, 1, 1)


def test_merged_summaries_equal_the_summary_of_all_trajectories():
    first, second = summary_of(EPISODES[:1]), summary_of(EPISODES[1:])
    first.merge(second)
    assert first.fields() == summary_of(EPISODES).fields()


def test_an_empty_summary_has_no_lengths():
    assert Summary().fields()["lengths"].turns == ()
