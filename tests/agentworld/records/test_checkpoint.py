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
def test_another_file_or_name_is_another_artifact(model, change):
    before = ArtifactManifest.of(model)
    change(model)
    assert ArtifactManifest.of(model).digest != before.digest
    with pytest.raises(InputError, match="does not match the manifest"):
        before.verify(model)


def test_an_artifact_is_the_same_wherever_it_lies(model, tmp_path):
    before = ArtifactManifest.of(model)
    moved = model.rename(tmp_path / "elsewhere")
    assert ArtifactManifest.of(moved) == before
    before.verify(moved)


def test_files_are_found_in_the_order_of_their_names(model):
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
def test_what_could_be_read_and_is_no_file_is_refused(model, add):
    add(model / "strange")
    with pytest.raises(InputError, match="strange is neither a regular file nor a folder"):
        ArtifactManifest.of(model)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no folder .*model"):
        ArtifactManifest.of(tmp_path / "model")
