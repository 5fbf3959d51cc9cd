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
    values = {row.what: (row.first, row.second) for row in difference.differences}
    assert values["recipe.min_turns"] == (2, 5)
    first, second = (dataset.dataset for dataset in pair)
    assert values["domains.text"] == (first.domains["text"], second.domains["text"])
    (source,) = first.sources
    assert values[f"sources.{source}"] == (first.sources[source], second.sources[source])
    assert values["tags.output"] == (first.tags["output"], second.tags["output"])
    assert values["pools.rl.num_samples"][0] == first.pools["rl"].num_samples
    assert values["filtered.short trajectory"] == (6, 24)
    assert "parents" not in values
    assert (difference.num_only_first, difference.num_only_second) == (18, 0)
    assert difference.num_both == second.num_trajectories
