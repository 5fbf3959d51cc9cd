"""A step's own process, which follows other pods."""

import sys
from pathlib import Path

from agentworld_pipelines.retries import call_with_retries
from agentworld_pipelines.stages import live, train
from machines.forked import Forked, Work
from waiting import DEADLINE, wait_for


class StepProcess:
    """Runs a step with these arguments, as the step's pod does."""

    def __init__(
        self, store: Path, environment: dict[str, str], step: Work, *arguments: str
    ) -> None:
        self.store = store
        self._log = store / "step.log"
        self._process = Forked(self._log, step, *arguments, **environment)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def says(self, words: str) -> None:
        """Waits until it has printed these words."""

        def has_printed() -> bool:
            assert self._process.poll() is None or words in self.said, self.said
            return words in self.said

        wait_for(has_printed)

    def ends(self) -> int:
        return self._process.wait(DEADLINE)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def run_training(recipe: str, store: str, data: str, place: str) -> None:
    """The step of a stage."""
    sys.stdout.write(f"made {train('cpt', recipe, store, data, place=place)}\n")


def run_collection(recipe: str, store: str, place: str) -> None:
    """The step of live shells."""
    folder = call_with_retries(live, "collect", recipe, store, place=place)
    sys.stdout.write(f"made {folder}\n")
