"""The memory limit of a sandbox, in folders like those of a kernel."""

import os

import pytest

from agentworld.domains.cgroup import confine, remove


@pytest.fixture
def machine(tmp_path):
    """A function that makes the folders of a process in `/user/app` and its cgroups in `top`."""

    def make(controllers, own="/user/app", root="/"):
        proc, top = tmp_path / "proc", tmp_path / "top"
        folder = top / own.removeprefix(root).lstrip("/")
        proc.mkdir()
        folder.mkdir(parents=True)
        (proc / "cgroup").write_text(f"4:memory:/other\n0::{own}\n")
        mounts = (
            f"30 24 0:26 / /sys rw - sysfs sysfs rw\n31 30 0:27 {root} {top} rw - cgroup2 c rw\n"
        )
        (proc / "mountinfo").write_text(mounts)
        for name, content in controllers.items():
            (top / name / "cgroup.subtree_control").write_text(content)
        return proc, top

    return make


def test_a_sandbox_is_confined_in_a_sibling_cgroup_of_its_starter(machine):
    proc, top = machine({"user/app": "", "user": "cpu memory pids"})
    group = confine(4711, 1 << 20, proc)
    assert group.parent == top / "user"
    contents = {path.name: path.read_text() for path in group.iterdir()}
    assert contents == {
        "memory.max": "1048576",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cgroup.procs": "4711",
    }


def test_sandboxes_of_a_process_in_the_root_cgroup_are_below_the_root(machine):
    proc, top = machine({".": "memory"}, own="/")
    assert confine(1, 1, proc).parent == top


def test_a_partially_mounted_cgroup_tree_is_resolved(machine):
    proc, top = machine({"app": "", ".": "memory"}, own="/pods/app", root="/pods")
    assert confine(1, 1, proc).parent == top


@pytest.mark.parametrize("controllers", [{}, {"user": "cpu pids"}, {"user": "memory_x"}])
def test_without_the_memory_controller_no_cgroup_is_created(machine, controllers):
    proc, top = machine(controllers)
    before = sorted(top.rglob("*"))
    assert confine(1, 1, proc) is None
    assert sorted(top.rglob("*")) == before


@pytest.mark.parametrize("content", ["", "4:memory:/only\n"], ids=["none", "version 1"])
def test_without_cgroup_version_2_no_cgroup_is_created(tmp_path, content):
    (tmp_path / "cgroup").write_text(content)
    (tmp_path / "mountinfo").write_text("")
    assert confine(1, 1, tmp_path) is None


def test_only_cgroups_of_ended_processes_are_removed(machine):
    proc, top = machine({"user": "memory"})
    for name in ("agentworld-4194305-dead", f"agentworld-{os.getpid()}-mine"):
        (top / "user" / name).mkdir()
    confine(1, 1, proc)
    names = {path.name for path in (top / "user").glob("agentworld-*")}
    assert "agentworld-4194305-dead" not in names
    assert f"agentworld-{os.getpid()}-mine" in names


def test_a_cgroup_still_in_use_is_not_removed(tmp_path):
    (tmp_path / "busy").write_text("")
    remove(tmp_path)
    assert tmp_path.exists()
