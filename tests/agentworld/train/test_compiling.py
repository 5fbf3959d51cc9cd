from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.errors import InputError
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.train.parent import Parent
from make.training import TINY

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

RECIPE = NextTokenRecipe(**TINY, stage="cpt", tokens_per_batch=512, epochs=10)


def test_compiled_layers_reach_the_loss_of_uncompiled_layers(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.model import load_model
    from agentworld.train.trainer import train_rows

    rows = list(encode(language_model.tokenizer, map(whole_episode, samples)))
    language_model.save(tmp_path / "start")
    losses = []
    for is_compiled in (False, True):
        recipe = RECIPE.model_copy(update={"compile_layers": is_compiled})
        model, out = load_model(Parent(tmp_path / "start")), tmp_path / str(is_compiled)
        losses.append(train_rows(model, recipe, rows, out, ignore_progress)["loss"])
    plain_loss, compiled_loss = losses
    assert plain_loss > 0  # a run that is too short reports no loss
    assert compiled_loss == pytest.approx(plain_loss, rel=0.02)


def test_every_layer_is_compiled_and_nothing_else(language_model: LanguageModel) -> None:
    from agentworld.train.compiling import compile_layers

    names = set(language_model.model.state_dict())
    compile_layers(language_model.model)
    compiled_names = [
        name for name, module in language_model.model.named_modules() if _is_compiled(module)
    ]
    assert compiled_names == ["model.layers.0"]
    assert set(language_model.model.state_dict()) == names


def test_compiling_layers_without_a_compiler_is_refused(
    language_model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworld.train import compiling

    monkeypatch.setattr(compiling.shutil, "which", lambda _name: None)
    with pytest.raises(InputError, match=r"needs g\+\+ .* set it to false"):
        compiling.compile_layers(language_model.model)


def test_only_the_libraries_of_killed_compilers_are_removed(tmp_path: Path) -> None:
    from filelock import FileLock

    from agentworld.train.compiling import remove_unfinished_builds

    (tmp_path / "locks").mkdir()
    for key in ("killed", "running", "finished"):
        (tmp_path / key).mkdir()
        (tmp_path / key / f"{key}.main.so").write_bytes(b"half of a library")
    for key in ("killed", "running"):
        (tmp_path / key / f"{key}.main_CxxBuild").mkdir()
    with FileLock(tmp_path / "locks" / "running.lock"):
        remove_unfinished_builds(tmp_path)
    names = {path.name for path in tmp_path.glob("*/*main*")}
    assert names == {"running.main.so", "running.main_CxxBuild", "finished.main.so"}


def _is_compiled(module: object) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None
