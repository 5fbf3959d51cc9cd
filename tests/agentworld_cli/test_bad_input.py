"""Every command with wrong input prints one sentence and no traceback, and sets a code."""

import subprocess
import sys
from pathlib import Path

import pytest

import make.job
import make.registry
from agentworld_cli.main import main
from agentworld_pipelines.local import LOG
from make import records
from waiting import DEADLINE

MISSING = "/nowhere/at/all"


def error_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> str:
    """The error message of a command that must fail."""
    monkeypatch.setattr(sys, "argv", ["agentworld", *words.split()])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code not in (0, None)
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return text


def is_a_sentence(text: str) -> bool:
    return text.startswith("error: ") and text.count("\n") == 1


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """A store with a finished job whose step folders are almost empty."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    make.job.finished_job(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("adit agent a@1", "no such command 'adit'; did you mean 'audit'; see `agentworld --help`"),
        ("audit agnet a@1", "'agnet'; did you mean 'agent'; see `agentworld audit --help`"),
        ("run list --stor x", "no such option: --stor; did you mean --json, --store; see"),
        ("audit agent", "missing argument 'NAME@VERSION'; see `agentworld audit agent --help`"),
        ("api-key new x", "got unexpected extra argument(s) (x); see `agentworld api-key new"),
        ("console --port x", "invalid value for '--port': it should be a valid integer"),
        ("audit export --format pdf", "invalid value for '--format': 'pdf' is not one of"),
        ("cost --run", "option '--run' requires an argument; see `agentworld --help`"),
    ],
)
def test_an_invalid_command_line_prints_one_sentence(capsys, monkeypatch, words, sentence):
    text = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(text)
    assert sentence in text


def test_a_command_group_alone_prints_its_help(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["agentworld", "audit"])
    with pytest.raises(SystemExit) as exit_info:
        main()
    output = capsys.readouterr()
    assert (exit_info.value.code, output.err) == (2, "")
    assert "withdrawn" in output.out


FOLDERS = {
    "data prepare": "--collected",
    "train cpt": "--data",
    "train sft --parent {there}": "--data",
    "train sft --data {there}": "--parent",
    "train rl --parent {there}": "--data",
    "train imitate": "--collected",
    "train agent": "--imitated",
    "evaluate stages --cpt {there} --sft {there} --rl {there}": "--data",
    "agent validate --imitated {there}": "--agent",
    "agent register --validation {there}": "--agent",
}


@pytest.mark.compute
@pytest.mark.parametrize(("command", "option"), FOLDERS.items())
def test_the_error_names_a_missing_folder(capsys, monkeypatch, store, command, option):
    step_folder = next((store / "steps/collect").iterdir())
    words = f"{command.format(there=step_folder)} {option} {MISSING} --store {store} --recipe smoke"
    text = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(text)
    assert f"{MISSING} is not a finished step" in text


RECIPES = {
    "model:\n  hidden_sise: 64\nname: x\n": "is wrong at model.hidden_sise",
    "name: x\ncollect:\n  num_transitions: -3\n": "is wrong at collect.num_transitions",
    "name: [x\n": "is not YAML",
    "- a list\n": "is wrong at the whole",
    "\x00": "is not YAML",
}
WITH_RECIPES = [
    "demo --recipe {recipe}",
    "data collect --recipe {recipe}",
    "pipeline run --recipe {recipe}",
]
WITH_FOLDERS = [
    "data prepare --collected x",
    "train cpt --data x",
    "train sft --data x --parent x",
    "train rl --data x --parent x",
    "train imitate --collected x --simulator x",
    "train agent --imitated x",
    "evaluate stages --data x --cpt x --sft x --rl x",
    "evaluate served x",
    "agent validate --agent x --imitated x",
]


@pytest.mark.parametrize("command", WITH_RECIPES)
@pytest.mark.parametrize(("text", "problem"), RECIPES.items(), ids=RECIPES.values())
def test_the_error_names_an_invalid_recipe_and_its_key(
    capsys, monkeypatch, tmp_path, command, text, problem
):
    (tmp_path / "mine.yaml").write_text(text)
    words = command.format(recipe=tmp_path / "mine.yaml") + f" --store {tmp_path / 'store'}"
    sentence = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(sentence)
    assert f"{tmp_path / 'mine.yaml'} {problem}" in sentence
    assert not (tmp_path / "store").exists()


@pytest.mark.compute
@pytest.mark.parametrize("command", WITH_FOLDERS)
def test_every_step_reports_an_invalid_recipe_key_first(capsys, monkeypatch, tmp_path, command):
    (tmp_path / "mine.yaml").write_text("name: x\nmodel:\n  hidden_sise: 64\n")
    words = f"{command} --recipe {tmp_path / 'mine.yaml'} --store {tmp_path / 'store'}"
    sentence = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(sentence)
    assert "is wrong at model.hidden_sise" in sentence


@pytest.mark.parametrize("command", WITH_RECIPES)
def test_an_unknown_recipe_is_refused_with_the_known_ones(capsys, monkeypatch, tmp_path, command):
    words = command.format(recipe="nosuch") + f" --store {tmp_path}"
    text = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(text)
    assert "there is no recipe 'nosuch'" in text
    assert "smoke" in text


RECORDS = {
    "data show {folder}": "steps/prepare/*/receipt.json dataset.json",
    "simulator show {simulator} --store {store}": "simulators/*/manifest.json manifest.json",
    "simulator attach {simulator} {folder}/report.json --store {store}": (
        "simulators/*/manifest.json report.json"
    ),
}


@pytest.mark.parametrize(("command", "place"), RECORDS.items())
@pytest.mark.parametrize("text", ['{"files": 3', "[]", '{"strange": 1}', "\xff\xfe"])
def test_the_error_names_the_file_of_a_malformed_record(
    capsys, monkeypatch, store, command, place, text
):
    pattern, file = place.split()
    folder = next(store.glob(pattern)).parent
    (folder / file).write_text(text, encoding="latin-1")
    words = command.format(folder=folder, store=store, simulator=records.manifest().digest)
    sentence = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(sentence)
    assert str(folder / file) in sentence


@pytest.mark.compute
def test_the_error_names_the_line_of_a_malformed_trajectory(capsys, monkeypatch, store):
    folder = next((store / "steps/collect").iterdir())
    (folder / "log.jsonl").write_text('{"domain": "terminal"}\n')
    words = f"data prepare --collected {folder} --store {store} --recipe smoke"
    text = error_of(capsys, monkeypatch, words)
    assert is_a_sentence(text)
    assert f"{folder / 'log.jsonl'} line 1 is not a valid trajectory" in text


@pytest.mark.compute
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("audit agent shell-agent@7", "nothing is registered as 'shell-agent'"),
        ("simulator pin agentworld-shell@7", "nothing is registered as 'agentworld-shell'"),
    ],
)
def test_the_error_names_an_unregistered_agent_or_world_model(
    capsys, monkeypatch, store, command, words
):
    make.registry.database(store)
    text = error_of(capsys, monkeypatch, f"{command} --store {store}")
    assert is_a_sentence(text)
    assert words in text


@pytest.mark.parametrize(
    "command", ["audit agent shell-agent", "simulator pin agentworld-shell", "audit agent @1"]
)
def test_a_malformed_version_is_refused(capsys, monkeypatch, store, command):
    text = error_of(capsys, monkeypatch, f"{command} --store {store}")
    assert is_a_sentence(text)
    assert "is not NAME@VERSION" in text


@pytest.mark.parametrize(
    "command",
    [
        *("audit agent shell-agent@1", "audit simulator 12", "simulator pin a@1"),
        *("world-model list", "world-model show a@1"),
    ],
)
def test_a_store_without_a_registry_stays_empty(capsys, monkeypatch, tmp_path, command):
    text = error_of(capsys, monkeypatch, f"{command} --store {tmp_path / 'gone'}")
    assert is_a_sentence(text)
    assert f"{tmp_path / 'gone'} holds no registry" in text
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("command", ["alias list", "data list", "simulator list"])
def test_the_error_names_a_missing_store(capsys, monkeypatch, tmp_path, command):
    text = error_of(capsys, monkeypatch, f"{command} --store {tmp_path / 'gone'}")
    assert text == f"error: there is no store {tmp_path / 'gone'}; name another one with --store\n"


SIMULATOR_COMMANDS = [
    "simulator show",
    "simulator verify",
    "simulator serve --access local",
    "alias set production",
]


@pytest.mark.parametrize("command", SIMULATOR_COMMANDS)
def test_an_unknown_simulator_is_refused_with_the_known_ones(capsys, monkeypatch, store, command):
    text = error_of(capsys, monkeypatch, f"{command} sha256:00 --store {store}")
    assert is_a_sentence(text)
    assert "there is no simulator sha256:00" in text
    assert records.manifest().digest in text


@pytest.mark.compute
def test_the_error_names_an_unwritable_file(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    text = error_of(capsys, monkeypatch, f"pipeline compile --out {tmp_path}/file/pipeline.yaml")
    assert is_a_sentence(text)
    assert f"{tmp_path}/file" in text


@pytest.mark.compute
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("agnet", "there is no pipeline 'agnet'; pipelines are world_model, agent"),
        (
            f"--placement {MISSING}",
            f"cannot read the placement {MISSING}: No such file or directory",
        ),
        (
            "--placement {tmp_path}/typo.yaml",
            "typo.yaml is wrong at default.que: there is no such field",
        ),
    ],
)
def test_an_invalid_pipeline_or_placement_is_refused(capsys, monkeypatch, tmp_path, words, problem):
    (tmp_path / "typo.yaml").write_text("default: {que: training}")
    words = words.format(tmp_path=tmp_path)
    text = error_of(capsys, monkeypatch, f"pipeline compile {words} --out {tmp_path}/pipeline.yaml")
    assert is_a_sentence(text)
    assert problem in text
    assert not (tmp_path / "pipeline.yaml").exists()


def test_a_demo_without_a_sandbox_is_refused(capsys, monkeypatch, tmp_path):
    from agentworld.domains import sandbox

    sandbox.check_sandbox.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    text = error_of(capsys, monkeypatch, f"demo --recipe smoke --store {tmp_path / 'store'}")
    sandbox.check_sandbox.cache_clear()
    assert is_a_sentence(text)
    assert "no sandbox" in text
    assert not (tmp_path / "store").exists()


@pytest.mark.compute
def test_a_second_run_in_the_same_store_is_refused(capsys, monkeypatch, tmp_path):
    from agentworld.runner.lock import hold
    from agentworld.runner.step import DRIVER_LOCK

    with hold(tmp_path / DRIVER_LOCK, "held"):
        text = error_of(capsys, monkeypatch, f"demo --recipe smoke --store {tmp_path}")
    assert is_a_sentence(text)
    assert f"another run is using {tmp_path}" in text
    assert not (tmp_path / LOG).exists()


@pytest.mark.compute
@pytest.mark.parametrize("size", ["8k", "200k"])
@pytest.mark.parametrize("words", ["demo --recipe", "data collect --recipe"])
def test_the_error_names_a_full_disk(tmp_path, size, words):
    command = f"{sys.executable} -m agentworld_cli.main {words} smoke --store {tmp_path}"
    script = f"mount -t tmpfs -o size={size} tmpfs {tmp_path} && exec {command}"
    arguments = ["unshare", "--mount", "sh", "-c", script]
    result = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert result.returncode == 7, result.stderr
    *_, last_line = result.stderr.splitlines()
    assert "Traceback" not in result.stderr
    assert f"the disk that holds {tmp_path} is full; free space and run it again" in last_line


@pytest.mark.compute
def test_compiling_a_pipeline_to_a_full_disk_prints_one_sentence(tmp_path):
    command = f"{sys.executable} -m agentworld_cli.main pipeline compile --out {tmp_path}/p.yaml"
    script = f"mount -t tmpfs -o size=8k tmpfs {tmp_path} && exec {command}"
    arguments = ["unshare", "--mount", "sh", "-c", script]
    result = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert result.returncode == 7
    assert is_a_sentence(result.stderr)
    assert f"cannot write {tmp_path}/p.yaml: No space left on device" in result.stderr
