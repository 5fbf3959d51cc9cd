"""The trainings of a campaign: each takes seconds."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from make.training import training


class Training(NamedTuple):
    """A step of a tiny model, in one process or several."""

    name: str
    step: str = "cpt"
    fields: Mapping[str, object] = {}
    """Fields of the stage that replace the tiny recipe's."""
    num_ranks: int = 1
    """The number of processes at the first start; after a fault, another number may resume, unless
    it is one.
    """

    @property
    def is_of_several(self) -> bool:
        """Whether losses are compared, instead of weights bit for bit."""
        return self.num_ranks > 1


def _with_zero(stage: int) -> Training:
    fields = {"muon_learning_rate": None, "zero_stage": stage}
    return Training(f"zero {stage}", fields=fields, num_ranks=2)


CPT = Training("cpt")
ALONE = (CPT, Training("sft", "sft", {"packing": True}))
SEVERAL = Training("several", num_ranks=2)
ALL = (*ALONE, SEVERAL, _with_zero(2), _with_zero(3))


def prepare(spec: Training, store: Path, parent: Path | None) -> tuple[str, ...]:
    """Creates a store with the training's inputs; returns the arguments of its step."""
    store.parent.mkdir(parents=True, exist_ok=True)
    inputs = training(store, **{spec.step: {"checkpoint_every": 3, **spec.fields}})
    if spec.step == "cpt":
        return tuple(inputs)
    assert parent
    shutil.copytree(parent, parent_copy := store / "steps" / "cpt" / parent.name)
    return *inputs, str(parent_copy)
