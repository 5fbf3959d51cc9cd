"""Argo's settings without a retry, in releases of Kubeflow Pipelines."""

import re

import pytest
import yaml

from agentworld.errors import InputError
from agentworld_pipelines.checking import PATTERN, retry_problems
from make.pipelines import ROOT

ADVICE = {"limit": "0", "retryPolicy": "Always"}
INSTALLATION = {"limit": "2", "retryPolicy": "OnError"}
"""From the manifests of Kubeflow Pipelines 2.17.2, which also set the pattern."""


def config_map(strategy):
    defaults = {"spec": {"templateDefaults": {"retryStrategy": strategy}}}
    return {"data": {"workflowDefaults": yaml.safe_dump(defaults)}}


def controller(**variables):
    environment = [{"name": name, "value": value} for name, value in variables.items()]
    container = {"name": "workflow-controller", "env": environment}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def problems(strategy, **variables):
    return retry_problems(config_map(strategy), controller(**variables))


def test_kubeflow_2_17_as_installed_lacks_a_policy_and_a_limit():
    policy, limit = problems(INSTALLATION, **{PATTERN: "(?i)evict"})
    assert policy.startswith("retryPolicy in workflowDefaults.spec.templateDefaults.retryStrategy")
    assert "is OnError: Argo does not replace a pod whose process failed, that ran out" in policy
    assert policy.endswith("set it to Always")
    assert "is 2: it also applies to the graphs around a step" in limit


def test_the_advised_settings_have_no_problem():
    assert problems(ADVICE) == []


def test_the_guide_shows_the_reported_problems_and_advises_valid_settings():
    guide = (ROOT / "docs/guides/pipelines.md").read_text()
    assert "\n".join(problems(INSTALLATION)) in guide
    (text,) = re.findall(r"^```text\n(workflowDefaults.*?)^```", guide, re.M | re.S)
    assert retry_problems({"data": yaml.safe_load(text)}, controller()) == []


def test_both_forms_of_argos_settings_are_read():
    defaults = {"workflowDefaults": {"spec": {"templateDefaults": {"retryStrategy": ADVICE}}}}
    assert retry_problems({"data": {"config": yaml.safe_dump(defaults)}}, controller()) == []


@pytest.mark.parametrize(
    ("strategy", "variables", "names"),
    [
        ({}, {}, ["retryPolicy", "limit"]),
        ({"limit": 0, "retryPolicy": "OnFailure"}, {}, ["retryPolicy"]),
        ({"limit": 0, "retryPolicy": "OnTransientError"}, {}, ["retryPolicy", PATTERN]),
        ({"limit": 0, "retryPolicy": "OnTransientError"}, {PATTERN: "evict"}, ["retryPolicy"]),
        ({"limit": 0, "expression": "true"}, {}, []),
        ({"retryPolicy": "Always"}, {}, ["limit"]),
    ],
)
def test_each_missing_or_wrong_setting_is_named(strategy, variables, names):
    assert [problem.split()[0] for problem in problems(strategy, **variables)] == names


@pytest.mark.parametrize("data", [None, {}, {"workflowDefaults": "spec: 3"}, {"config": "[]"}])
def test_empty_settings_lack_a_policy_and_a_limit(data):
    assert len(retry_problems({"data": data}, controller())) == 2


@pytest.mark.parametrize("data", [{"workflowDefaults": "{"}, {"config": "words"}])
def test_settings_that_are_no_yaml_are_rejected(data):
    with pytest.raises(InputError, match="is not YAML"):
        retry_problems({"data": data}, controller())
