"""Descriptions of an engine's accelerators."""

import os
import subprocess

import pytest

from agentworld.engine.accelerators import of_this_machine


@pytest.fixture
def gpus(monkeypatch):
    """The output of `nvidia-smi`, and its arguments."""
    outputs, calls = [], []

    def run(arguments, **_):
        calls.append(arguments)
        if not outputs:
            raise FileNotFoundError(arguments[0])
        return subprocess.CompletedProcess(arguments, 0, outputs[0], "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return outputs, calls


def test_gpus_are_counted_by_name(gpus):
    gpus[0].append("NVIDIA H200\nNVIDIA H200\nNVIDIA A100\n")
    assert of_this_machine() == "1 x NVIDIA A100, 2 x NVIDIA H200"


def test_only_gpus_in_cuda_visible_devices_are_listed(gpus, monkeypatch):
    gpus[0].append("NVIDIA H200\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert of_this_machine() == "1 x NVIDIA H200"
    assert gpus[1][0][-2:] == ["-i", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert of_this_machine().startswith("cpu ")


@pytest.mark.usefixtures("gpus")
def test_without_a_gpu_the_cpu_is_listed_with_its_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    description = of_this_machine()
    assert description.startswith("cpu ")
    assert description.endswith(", 2 cores")
