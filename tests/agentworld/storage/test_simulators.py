"""A pinned simulator does not change, and changes are noticed."""

import hashlib
import os
import stat

import pytest

from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.records.report import read_report
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from make import records
from make.weights import weights


@pytest.fixture
def store(tmp_path):
    return SimulatorStore(tmp_path / "store")


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "elsewhere"
    (folder / "more").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights())
    (folder / "more" / "config.json").write_text("{}")
    return folder


def pin_model(store, model, **fields):
    artifact = store.import_model(model)
    return store.keep(records.manifest(artifact=artifact.digest, files=artifact.files, **fields))


def pin_endpoint(store):
    endpoint = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
    return store.keep(records.manifest(artifact=None, files={}, engine=endpoint))


def inodes(simulator):
    return {path.name: path.stat().st_ino for path in simulator.model.rglob("*.*")}


def test_a_simulator_is_found_by_its_digest_or_a_prefix(store, model):
    simulator = pin_model(store, model)
    digest = simulator.digest
    assert simulator.manifest.digest == digest
    for start in (digest, digest[:15], digest[7:15]):
        assert store.find(start) == simulator


def test_the_folder_name_is_the_sha256_of_the_manifest_file(store, model):
    folder = pin_model(store, model).folder
    assert hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest() == folder.name


def test_the_error_for_an_unknown_simulator_lists_the_existing_simulators(store, model):
    with pytest.raises(NotFound, match="simulators are none yet"):
        store.find("00")
    digest = pin_model(store, model).digest
    with pytest.raises(NotFound, match=f"no simulator sha256:xy in .*; simulators are {digest}"):
        store.find("xy")


def test_an_ambiguous_digest_prefix_is_refused(store, model):
    pin_model(store, model), pin_endpoint(store)
    assert len(store.all()) == 2
    with pytest.raises(InputError, match="is the start of"):
        store.find("sha256:")


def test_pinned_files_are_read_only_and_independent_of_the_source(store, model):
    simulator = pin_model(store, model)
    simulator.attach(records.agent_report(simulator=simulator.digest))
    files = [path for path in simulator.folder.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o444}
    (model / "model.safetensors").write_bytes(b"trained on")
    simulator.verify()


def test_two_simulators_of_a_model_share_its_files(store, model):
    one, other = pin_model(store, model), pin_model(store, model, context_tokens=512)
    assert one.digest != other.digest
    assert inodes(one) == inodes(other)
    assert one.size_bytes == len(weights()) + len(b"{}")


def test_an_already_pinned_model_is_not_copied_again(store, model):
    first = inodes(pin_model(store, model))
    assert inodes(pin_model(store, model)) == first


def test_importing_a_model_reports_progress_to_its_end(store, model):
    ticks = []
    store.import_model(model, lambda done, total: ticks.append((done, total)))
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]


def _copy_weights(path):
    copy = path.parents[3] / "weights"
    copy.write_bytes(weights())
    return copy


CHANGES = {
    "another byte": lambda path: path.write_bytes(b"Weights"),
    "cut off": lambda path: path.write_bytes(b"weig"),
    "gone": lambda path: path.unlink(),
    "a link to the same bytes": lambda path: (path.unlink(), path.symlink_to(_copy_weights(path))),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_file_is_reported_and_the_next_pin_repairs_it(store, model, change):
    simulator = pin_model(store, model)
    change(simulator.model / "model.safetensors")
    with pytest.raises(EvidenceError, match=r"model/model\.safetensors (does not match|is a link)"):
        simulator.verify()
    pin_model(store, model).verify()


def test_an_added_file_is_reported(store, model):
    simulator = pin_model(store, model)
    (simulator.model / "chat_template.jinja").touch()
    with pytest.raises(EvidenceError, match=r"chat_template\.jinja does not match"):
        simulator.verify()


def test_a_changed_manifest_is_reported(store, model):
    simulator = pin_model(store, model)
    path = simulator.folder / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"1024", b"2048"))
    for read in (store.all, lambda: store.find(simulator.digest)):
        with pytest.raises(EvidenceError, match=r"manifest\.json is not the pinned manifest"):
            read()


def test_an_interrupted_pin_is_no_simulator_and_the_next_pin_completes_it(store, model):
    simulator = pin_model(store, model)
    (simulator.folder / "manifest.json").unlink()
    assert store.all() == []
    with pytest.raises(InputError, match="is not a pinned simulator"):
        PinnedSimulator.read(simulator.folder)
    assert pin_model(store, model) == simulator


def test_a_model_that_may_contain_code_is_not_imported(store, model, tmp_path):
    (model / "modeling.py").touch()
    with pytest.raises(InputError, match=r"modeling\.py may contain code"):
        pin_model(store, model)
    assert not (tmp_path / "store").exists()


def test_a_file_that_changes_while_it_is_read_is_refused(store, model):
    def train_on(*_progress):
        (model / "model.safetensors").write_bytes(os.urandom(7))

    with pytest.raises(InputError, match=r"model\.safetensors changed while it was read"):
        store.import_model(model, train_on)


def test_files_are_copied_on_a_disk_without_hard_links(store, model, monkeypatch):
    def refuse(*_arguments):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    simulator = pin_model(store, model)
    simulator.verify()
    files = [path for path in simulator.model.rglob("*") if path.is_file()]
    assert {path.stat().st_nlink for path in files} == {1}


def test_a_simulator_of_an_endpoint_has_no_files_and_verifies(store):
    simulator = pin_endpoint(store)
    simulator.verify()
    assert not simulator.model.exists()
    assert simulator.size_bytes == 0


def test_a_report_about_a_simulator_or_its_weights_can_be_attached(store, model):
    simulator = pin_model(store, model)
    assert simulator.reports == []
    simulator_report = records.agent_report(simulator=simulator.digest)
    weights_report = records.world_report(artifacts={"rl": simulator.manifest.artifact})
    for report in (simulator_report, weights_report):
        simulator.attach(report)
        path = simulator.folder / "reports" / f"{report.digest.removeprefix('sha256:')}.json"
        assert read_report(path) == report
    assert simulator.reports == sorted([simulator_report.digest, weights_report.digest])


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (records.agent_report(), "about sha256:"),
        (records.world_report(), "about nothing that it names"),
    ],
)
def test_a_report_about_another_simulator_is_refused(store, model, report, message):
    simulator = pin_model(store, model)
    with pytest.raises(InputError, match=message):
        simulator.attach(report)
    assert simulator.reports == []


def test_a_report_without_a_subject_is_refused_for_an_endpoint(store):
    with pytest.raises(InputError, match="about nothing that it names"):
        pin_endpoint(store).attach(records.world_report())


def test_a_changed_attached_report_fails_verification(store, model):
    simulator = pin_model(store, model)
    simulator.attach(records.agent_report(simulator=simulator.digest))
    (path,) = (simulator.folder / "reports").iterdir()
    path.write_text("{}")
    with pytest.raises(EvidenceError, match=rf"{path.name} is not the attached report"):
        simulator.verify()
