"""The tool that writes the digests of images into values of the chart."""

import subprocess
import sys

import yaml

from machines.images import Image
from make.chart import ROOT, Values


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool as a user does."""
    command = [sys.executable, ROOT / "tools/image_values.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def of_images(control: Image, train: Image, postgres: Image) -> Values:
    """The values that install these images."""
    images = {"control": control, "train": train, "postgres": postgres}
    result = run(*(f"--{key}={image.pinned_name}" for key, image in images.items()))
    assert result.returncode == 0, result.stderr
    values: Values = yaml.safe_load(result.stdout)
    return values
