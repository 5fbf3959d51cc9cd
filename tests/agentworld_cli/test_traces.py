"""The command that makes traces, and the page about it."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from agentworld.recipes import load_recipe
from agentworld.storage.traces import read_traces
from agentworld_cli.main import app
from make import tracing, training

pytestmark = pytest.mark.waits

PAGE = (Path(__file__).parents[2] / "docs/guides/traces.md").read_text()


def test_data_traces_prints_its_folder_and_the_table_of_the_page(tmp_path):
    with tracing.endpoints() as server:
        inputs = training.training(tmp_path / "store")
        recipe = yaml.safe_load(Path(inputs.recipe).read_text())
        recipe["traces"] = tracing.traces_recipe(server.url).model_dump(mode="json")
        Path(inputs.recipe).write_text(yaml.safe_dump(recipe))
        words = [
            "data",
            "traces",
            "--data",
            inputs.data,
            "--recipe",
            inputs.recipe,
            "--store",
            inputs.store,
        ]
        result = CliRunner().invoke(app, words, env={"COLUMNS": "140"})
        json_result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    folder = result.stdout.strip()
    assert len(read_traces(Path(folder))) == 12
    assert json.loads(json_result.stdout) == {"folder": folder}
    head, row = _table(result.stderr)
    assert head == _table(PAGE)[0]
    cells = dict(zip(head, row, strict=True))
    assert cells["domain"] == "shell"
    assert (cells["prompts"], cells["retained"], cells["traces"]) == ("12", "100.0%", "12")
    assert cells["dollars"] == "unknown"


def _table(text):
    """The words of the head and of the first row of the last table in a text."""
    lines = text.splitlines()
    place = max(place for place, line in enumerate(lines) if line.split()[:1] == ["domain"])
    return lines[place].split(), lines[place + 2].split()


def test_the_recipes_of_the_page_are_valid(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        (tmp_path / "mine.yaml").write_text(block)
        recipe = load_recipe(tmp_path / "mine.yaml")
        assert recipe.traces
        assert recipe.traces.teacher.key_from
