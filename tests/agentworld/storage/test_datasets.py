"""Data sets of a store, found by a folder, a digest or the prefix of a digest."""

import pytest

import make.datasets
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.storage.datasets import find_dataset, list_datasets, prepared_dataset


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def dataset(store):
    return make.datasets.stored(store)


@pytest.mark.parametrize("length", [71, 20, 12], ids=["whole", "start", "short"])
def test_a_data_set_is_found_by_its_digest_or_a_prefix(store, dataset, length):
    assert find_dataset(dataset.digest[:length], store) == dataset
    assert find_dataset(dataset.digest[7:length], store) == dataset


def test_a_data_set_is_found_by_its_folder(dataset, tmp_path):
    assert find_dataset(str(dataset.folder), tmp_path) == dataset


def test_the_error_for_an_unknown_data_set_lists_the_existing_data_sets(store, dataset):
    with pytest.raises(NotFound, match=f"data sets are {dataset.digest}"):
        find_dataset("sha256:abc", store)
    with pytest.raises(InputError, match=r"has no dataset\.json"):
        find_dataset(str(store), store)


def test_an_ambiguous_digest_prefix_is_refused(tmp_path):
    for seed in (0, 1):
        make.datasets.stored(tmp_path, seed=seed)
    assert len(list_datasets(tmp_path)) == 2
    with pytest.raises(InputError, match="is the start of sha256:"):
        find_dataset("sha256:", tmp_path)


def test_the_import_and_its_quarantine_are_in_the_manifest(dataset):
    (parent,) = dataset.dataset.parents
    assert (parent.form, parent.num_quarantined) == ("messages", make.datasets.NUM_BAD)
    assert parent.options.keys() == {"licence", "source"}
    assert sum(dataset.dataset.quarantined.values()) == make.datasets.NUM_BAD
    records = list(dataset.quarantine(parent))
    assert [record.place for record in records] == ["line 61", "line 62", "line 63"]
    assert {record.reason for record in records} == dataset.dataset.quarantined.keys()


def test_a_data_set_has_as_many_trajectories_as_its_manifest_counts(dataset):
    assert len(dataset.trajectories()) == dataset.dataset.num_trajectories


def test_a_data_set_with_a_changed_manifest_is_refused(tmp_path):
    dataset = make.datasets.stored(tmp_path)
    assert prepared_dataset(dataset.digest, tmp_path) == dataset
    changed_manifest = dataset.dataset.model_copy(update={"num_read": 7})
    changed_manifest.write(dataset.folder / "dataset.json")
    with pytest.raises(EvidenceError, match="is not that of"):
        prepared_dataset(dataset.digest, tmp_path)


def test_a_data_set_of_another_store_is_not_found(dataset, tmp_path):
    assert prepared_dataset(dataset.digest, tmp_path) is None
    assert list_datasets(tmp_path) == []


def test_a_missing_pool_file_is_reported(tmp_path):
    dataset = make.datasets.stored(tmp_path)
    (dataset.folder / "rl.parquet").unlink()
    with pytest.raises(EvidenceError, match=r"rl\.parquet is garbled: No such file"):
        dataset.trajectories()
