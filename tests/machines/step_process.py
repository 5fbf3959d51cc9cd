"""A step's own process, which follows other pods."""

import os
import subprocess
import sys
from pathlib import Path

from waiting import wait_for


class StepProcess:
    """Runs some code with these arguments, as the step's pod does."""

    def __init__(
        self, store: Path, environment: dict[str, str], code: str, *arguments: object
    ) -> None:
        self.store = store
        self._log = store / "step.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, arguments)],
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=log,
                stderr=log,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def says(self, words: str) -> None:
        """Waits until it has printed these words."""

        def has_said() -> bool:
            assert self._process.poll() is None or words in self.said, self.said
            return words in self.said

        wait_for(has_said)

    def ends(self) -> int:
        return self._process.wait(120)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
