import os

import pytest

from agentworld.errors import InputError
from agentworld.records.checkpoint import ArtifactManifest, model_files


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "more").mkdir(parents=True)
    for name in ("model.safetensors", "chat_template.jinja", "more/a.json"):
        (folder / name).write_text(name)
    return folder


CHANGES = {
    "changed": lambda model: (model / "more/a.json").write_text("other"),
    "missing": lambda model: (model / "more/a.json").unlink(),
    "added": lambda model: (model / "more/b.json").touch(),
    "renamed": lambda model: (model / "more/a.json").rename(model / "more/a.jsom"),
    "moved": lambda model: (model / "more/a.json").rename(model / "a.json"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_file_or_name_changes_the_artifact_digest(model, change):
    manifest = ArtifactManifest.of(model)
    change(model)
    assert ArtifactManifest.of(model).digest != manifest.digest
    with pytest.raises(InputError, match="does not match the manifest"):
        manifest.verify(model)


def test_moving_a_model_folder_does_not_change_its_artifact(model, tmp_path):
    manifest = ArtifactManifest.of(model)
    moved_model = model.rename(tmp_path / "elsewhere")
    assert ArtifactManifest.of(moved_model) == manifest
    manifest.verify(moved_model)


def test_model_files_include_files_in_subfolders(model):
    names = ["chat_template.jinja", "model.safetensors", "more/a.json"]
    assert model_files(model) == {name: model / name for name in names}


@pytest.mark.parametrize(
    "add",
    [
        lambda path: path.symlink_to(path.parent, target_is_directory=True),
        lambda path: path.symlink_to("nothing"),
        os.mkfifo,
    ],
    ids=["link to a folder", "link to nothing", "pipe"],
)
def test_links_and_pipes_in_a_model_folder_are_refused(model, add):
    add(model / "strange")
    with pytest.raises(InputError, match="strange is neither a regular file nor a folder"):
        ArtifactManifest.of(model)


def test_a_missing_model_folder_is_reported(tmp_path):
    with pytest.raises(InputError, match="there is no folder .*model"):
        ArtifactManifest.of(tmp_path / "model")
