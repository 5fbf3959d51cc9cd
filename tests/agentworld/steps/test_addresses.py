import pytest

from agentworld.errors import InputError, NotFound
from agentworld.steps.addresses import check_store, open_registry, registry_digest


def test_a_variable_that_is_wrong_is_told_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "some time")
    with pytest.raises(InputError, match="the environment is wrong at agentworld_mlflow_patience"):
        open_registry(tmp_path)


def test_variables_that_are_empty_name_the_stores_own_registry(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    own = registry_digest()
    for name in ("MLFLOW_TRACKING_URI", "AGENTWORLD_MLFLOW_PATIENCE_SECONDS"):
        monkeypatch.setenv(name, "")
    assert registry_digest() == own
    with pytest.raises(NotFound, match="holds no registry"):
        check_store(tmp_path)
