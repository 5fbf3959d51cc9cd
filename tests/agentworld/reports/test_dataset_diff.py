"""The differences of two data sets."""

import pytest

import make.datasets
from agentworld.reports.dataset_diff import diff_datasets


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    return make.datasets.stored(store), make.datasets.stored(store, min_turns=5)


def test_a_data_set_has_no_difference_from_itself(pair):
    difference = diff_datasets(pair[0], pair[0])
    assert difference.differences == ()
    assert (difference.num_only_first, difference.num_only_second) == (0, 0)
    assert difference.num_both == pair[0].dataset.num_trajectories


def test_differing_recipe_fields_counts_and_trajectories_are_listed(pair):
    difference = diff_datasets(*pair)
    named = {each.what: (each.first, each.second) for each in difference.differences}
    assert named["recipe.min_turns"] == (2, 5)
    one, other = (each.dataset for each in pair)
    assert named["domains.text"] == (one.domains["text"], other.domains["text"])
    (source,) = one.sources
    assert named[f"sources.{source}"] == (one.sources[source], other.sources[source])
    assert named["tags.output"] == (one.tags["output"], other.tags["output"])
    assert named["pools.rl.num_samples"][0] == one.pools["rl"].num_samples
    assert named["filtered.short trajectory"] == (6, 24)
    assert "parents" not in named
    assert (difference.num_only_first, difference.num_only_second) == (18, 0)
    assert difference.num_both == other.num_trajectories
