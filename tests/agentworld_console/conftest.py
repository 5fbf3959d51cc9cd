"""A shared library that no test changes, and a copy that a test may change."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

import make.console
from make.console import ConsoleStore
from make.template import copied


@pytest.fixture(scope="session")
def content(tmp_path_factory: pytest.TempPathFactory) -> ConsoleStore:
    return make.console.library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def app(content: ConsoleStore, tmp_path_factory: pytest.TempPathFactory):
    return make.console.app(content.library, tmp_path_factory.mktemp("access"))


@pytest.fixture
def auditor(app) -> TestClient:
    return make.console.client(app, "office-auditor")


@pytest.fixture
def acme(app) -> TestClient:
    return make.console.client(app, "acme-agent")


@pytest.fixture
def copy(tmp_path: Path) -> ConsoleStore:
    return copied(make.console.library, tmp_path)
