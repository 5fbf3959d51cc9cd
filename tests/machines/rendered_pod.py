"""Runs the containers of a rendered pod as processes of this machine, with their commands and
variables.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Object = dict[str, Any]


class RenderedPod(NamedTuple):
    """A pod template, and the values that Kubernetes would give its containers."""

    spec: Object
    folders: Mapping[str, Path]
    """The folder that is mounted at a path of the containers."""
    secrets: Mapping[tuple[str, str], str]
    """The values of Secrets, by the Secret's name and the key."""
    path: Sequence[Path]
    """Folders with the images' programs."""

    def start(
        self, name: str, command: Sequence[str] = (), **extra_variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a container, with another command if one is given; returns the result."""
        container = self._container(name)
        arguments = list(map(self._local, command or container["command"]))
        environment = {**self._environment(container), **extra_variables}
        return subprocess.run(
            arguments,
            env=environment,
            cwd=self.folders["/work"],
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, name: str, command: Sequence[str] = ()) -> str:
        """Runs a container; returns its output, and fails if the container fails."""
        result = self.start(name, command)
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"
        return result.stdout

    def _container(self, name: str) -> Object:
        containers = [*self.spec.get("initContainers", ()), *self.spec["containers"]]
        (container,) = [container for container in containers if container["name"] == name]
        for mount in container["volumeMounts"]:
            assert self._local(mount["mountPath"]) != mount["mountPath"] or mount["name"] == "tmp"
        return container

    def _environment(self, container: Object) -> dict[str, str]:
        programs = [Path(sys.executable).parent, *self.path]
        inherited = {name: os.environ[name] for name in ("LANG", "HOME") if name in os.environ}
        return {
            **inherited,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(sys.path),
            **dict(self._variables(container)),
        }

    def _variables(self, container: Object) -> Iterator[tuple[str, str]]:
        for variable in container["env"]:
            if "value" in variable:
                yield variable["name"], self._local(variable["value"])
            else:
                key = variable["valueFrom"]["secretKeyRef"]
                yield variable["name"], self.secrets[key["name"], key["key"]]

    def _local(self, text: str) -> str:
        """The text with the paths of this machine."""
        paths = "|".join(map(re.escape, self.folders))
        return re.sub(
            rf"(?<![\w/.:])({paths})(?![\w.-])",
            lambda match: str(self.folders[match[1]]),
            text,
        )
