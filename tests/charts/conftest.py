"""Releases of the chart, each in a separate namespace."""

import secrets
from collections.abc import Callable, Iterator

import pytest

from machines import control_plane, helm_release
from machines.helm_release import Release
from make.operator import Namespace


@pytest.fixture(scope="session")
def charts(tmp_path_factory):
    """The previous chart and this chart, for the tests' server."""
    folder = tmp_path_factory.mktemp("charts")
    chart = helm_release.older_chart(folder)
    return helm_release.previous_chart(folder, chart), chart


@pytest.fixture(scope="module")
def empty_cluster(tmp_path_factory):
    """A cluster for these tests alone, because they install cluster-wide objects."""
    folder = tmp_path_factory.mktemp("releases")
    with control_plane.running(folder) as cluster, helm_release.jobs_run(cluster):
        yield cluster


@pytest.fixture(scope="module")
def new_release(empty_cluster, charts) -> Iterator[Callable[[], Release]]:
    """Creates a release and its namespace; uninstalls each release at the end, if it exists."""
    releases = []

    def create_release() -> Release:
        name = f"team-{secrets.token_hex(4)}"
        namespace = Namespace(empty_cluster.client, name)
        namespace.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        releases.append(Release(empty_cluster, namespace, charts))
        return releases[-1]

    yield create_release
    for release in releases:
        if release.exists():
            release.uninstall()


@pytest.fixture
def release(new_release) -> Release:
    return new_release()
