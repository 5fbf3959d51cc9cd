import pytest
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import ClusterError, InputError
from agentworld.recipes.environment import exit_status, from_environment


class ExampleSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="TOLD_")

    port: int
    names: tuple[str, ...] = ()


def test_settings_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("TOLD_PORT", "80")
    monkeypatch.setenv("TOLD_NAMES", '["a", "b"]')
    assert from_environment(ExampleSettings) == ExampleSettings(port=80, names=("a", "b"))


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({}, "port"),
        ({"TOLD_PORT": "x"}, "port"),
        ({"TOLD_PORT": "1", "TOLD_NAMES": "s3cret"}, "names"),
    ],
    ids=["missing", "no number", "no JSON"],
)
def test_an_invalid_variable_is_reported_without_its_value(monkeypatch, variables, field):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=field) as error:
        from_environment(ExampleSettings)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "status"), [(InputError("give a name"), 2), (ClusterError("it is gone"), 1)]
)
def test_an_error_is_printed_once_and_sets_the_exit_status(error, status, capsys):
    def work():
        raise error

    assert exit_status(work) == status
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_process_without_errors_prints_nothing_and_exits_with_0(capsys):
    assert exit_status(lambda: None) == 0
    assert capsys.readouterr().err == ""
