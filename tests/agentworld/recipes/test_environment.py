import pytest
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import ClusterError, InputError
from agentworld.recipes.environment import exit_status, from_environment


class Told(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="TOLD_")

    port: int
    names: tuple[str, ...] = ()


def test_a_process_is_told_by_its_environment(monkeypatch):
    monkeypatch.setenv("TOLD_PORT", "80")
    monkeypatch.setenv("TOLD_NAMES", '["a", "b"]')
    assert from_environment(Told) == Told(port=80, names=("a", "b"))


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, "port"),
        ({"TOLD_PORT": "x"}, "port"),
        ({"TOLD_PORT": "1", "TOLD_NAMES": "s3cret"}, "names"),
    ],
    ids=["missing", "no number", "no JSON"],
)
def test_what_is_wrong_is_named_in_one_sentence(monkeypatch, variables, named):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=named) as refused:
        from_environment(Told)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "status"), [(InputError("give a name"), 2), (ClusterError("it is gone"), 1)]
)
def test_a_process_ends_with_one_sentence_and_says_whether_to_begin_anew(error, status, capsys):
    def work():
        raise error

    assert exit_status(work) == status
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_process_whose_work_is_done_says_nothing(capsys):
    assert exit_status(lambda: None) == 0
    assert capsys.readouterr().err == ""
