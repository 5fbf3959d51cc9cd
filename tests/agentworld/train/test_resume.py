"""The choice of the checkpoint after a kill or a damaged disk."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.train.resume import newer_checkpoints, newest_checkpoint, seal

FILES = {"model.safetensors": b"weights", "trainer_state.json": b"{}", "nested/part": b"p"}
NAMES = (*FILES, "manifest.json")


def checkpoint(folder: Path, step: int) -> Path:
    path = folder / f"checkpoint-{step}"
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data + str(step).encode())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two complete checkpoints, of steps 4 and 10."""
    for step in (4, 10):
        seal(checkpoint(tmp_path, step))
    return tmp_path


def test_the_newest_checkpoint_is_chosen(folder: Path) -> None:
    assert newest_checkpoint(folder) == "checkpoint-10"


def test_a_missing_folder_has_no_newest_checkpoint(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "none") is None


def test_a_checkpoint_without_a_manifest_is_skipped_and_logged(folder: Path, caplog) -> None:
    checkpoint(folder, 12)
    assert newest_checkpoint(folder) == "checkpoint-10"
    assert f"{folder}/checkpoint-12 was changed or damaged; using the one before" in caplog.text


def test_a_checkpoint_changed_after_its_manifest_is_skipped_until_sealed_again(
    folder: Path,
) -> None:
    (checkpoint(folder, 10) / "trainer_state.json").write_bytes(b"another")
    assert newest_checkpoint(folder) == "checkpoint-4"
    seal(folder / "checkpoint-10")
    assert newest_checkpoint(folder) == "checkpoint-10"


def test_checkpoints_of_later_steps_are_found(folder: Path) -> None:
    assert newer_checkpoints(folder, 4) == [folder / "checkpoint-10"]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position // 8 % len(data)] ^= 1 << position % 8
    path.write_bytes(data)


def truncate(path: Path, position: int) -> None:
    path.write_bytes(path.read_bytes()[: position % path.stat().st_size])


def lengthen(path: Path, position: int) -> None:
    path.write_bytes(path.read_bytes() + bytes([position % 256]))


def remove(path: Path, _position: int) -> None:
    path.unlink()


def rename(path: Path, position: int) -> None:
    path.rename(path.with_name(f"another-{position}"))


def copy(path: Path, position: int) -> None:
    shutil.copy(path, path.with_name(f"another-{position}"))


def replace_by_a_folder(path: Path, _position: int) -> None:
    path.unlink()
    path.mkdir()


MUTATIONS = (flip, truncate, lengthen, remove, rename, copy, replace_by_a_folder)


@pytest.mark.compute
@given(st.sampled_from(NAMES), st.sampled_from(MUTATIONS), st.integers(0, 10_000))
def test_any_change_of_a_checkpoint_file_selects_the_previous_checkpoint(
    name: str, mutate: Callable[[Path, int], None], where: int
) -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for step in (4, 10):
            seal(checkpoint(folder, step))
        mutate(folder / "checkpoint-10" / name, where)
        assert newest_checkpoint(folder) == "checkpoint-4"
