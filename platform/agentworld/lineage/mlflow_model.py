"""A version of any model in MLflow, as a base model for training."""

import tempfile
from functools import partial
from pathlib import Path

import mlflow
from mlflow.entities.model_registry import ModelVersion
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.utils.file_utils import local_file_uri_to_path

from agentworld.errors import NotFound
from agentworld.lineage.server import Server, is_local, none_if_missing
from agentworld.records.base import digest_json
from agentworld.records.checkpoint import model_files
from agentworld.storage.bases import path_in


class MlflowModel:
    """A BaseSource."""

    def __init__(self, uri: str, name: str, version: int, patience_seconds: float) -> None:
        self._name = name
        self._number = str(version)
        self._server = Server(uri, patience_seconds)
        self._client = self._server.ask(lambda: mlflow.MlflowClient(uri, uri))
        self.address = f"models:/{name}/{version}"

    def stamp(self) -> str:
        """Its registration time, and the names and sizes of its files."""
        version = self._version()
        files = self._server.ask(lambda: self._files(version))
        if not files:
            raise NotFound(f"{self.address} has no files; register the folder of a complete model")
        return digest_json([version.source, version.creation_timestamp, files])

    def fetch(self, folder: Path) -> None:
        """Downloads the files that are missing or incomplete here."""
        version = self._version()
        for name, size in self._server.ask(lambda: self._files(version)).items():
            path = path_in(folder, name, self.address)
            if not path.is_file() or path.stat().st_size != size:
                self._server.ask(partial(self._download, version, name, folder))

    def _version(self) -> ModelVersion:
        get = self._client.get_model_version
        version = self._server.ask(lambda: none_if_missing(lambda: get(self._name, self._number)))
        if version is None:
            raise NotFound(f"the registry has no {self.address}; name a version that it has")
        return version

    def _location(self, version: ModelVersion) -> str:
        return str(self._client.get_model_version_download_uri(version.name, self._number))

    def _files(self, version: ModelVersion) -> dict[str, int]:
        """The sizes of all files; raises InputError for anything other than a file or folder."""
        location = self._location(version)
        if is_local(location):
            folder = Path(local_file_uri_to_path(location))
            return {name: path.stat().st_size for name, path in model_files(folder).items()}
        repository, files, folders = get_artifact_repository(location), dict[str, int](), [""]
        while folders:
            for entry in repository.list_artifacts(folders.pop() or None):
                if entry.is_dir:
                    folders.append(entry.path)
                else:
                    files[entry.path] = int(entry.file_size)
        return dict(sorted(files.items()))

    def _download(self, version: ModelVersion, name: str, folder: Path) -> None:
        uri = f"{self._location(version)}/{name}"
        # Outside of the folder, where a killed process would leave it among the model's files.
        with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
            file = mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=draft)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            Path(file).replace(folder / name)
