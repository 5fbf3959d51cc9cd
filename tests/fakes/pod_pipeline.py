"""Runs a compiled pipeline on the tests' nodes: a pod for each task, by the compiled file.

It replaces Kubeflow's own driver, launcher and Argo, and runs the compiled commands with Kubeflow's
executor input. Unknown settings in the file fail, so that no setting of a passing pipeline is
ignored.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from fakes import kfp_security
from make.pipelines import Compiled
from waiting import JOB_DEADLINE, wait_for

Tree = dict[str, Any]
Values = dict[str, Any]

OUTPUTS = "/kfp/outputs"
_EXECUTOR_OUTPUT = "executor_output.json"
_SAYS = re.compile(r"inputs\.parameter_values\['([^']+)'\] == '([^']*)'")
_KNOWN_OF_TASK = {
    *("cachingOptions", "componentRef", "dependentTasks", "inputs", "taskInfo"),
    *("triggerPolicy", "retryPolicy"),
}
_KNOWN_OF_POD = {
    *("pvcMount", "secretAsEnv", "nodeSelector", "emptyDirMounts", "imagePullPolicy"),
    "securityContext",
}
_KNOWN_OF_CONTAINER = {"args", "command", "image", "env", "resources"}


class Job(NamedTuple):
    """The environment of a pipeline."""

    core: client.CoreV1Api
    namespace: str
    id: str
    outputs: Path
    """A folder of this machine that every node mounts; it has the files that Kubeflow's launcher
    reads.
    """
    account: str = "default"
    """The service account of the pods."""
    image_pull_policy: str = "Never"


class Ran(NamedTuple):
    """The result of a run."""

    states: dict[str, str]
    """The state of each task: SUCCEEDED, FAILED, or SKIPPED."""
    outputs: dict[str, Values]
    """The outputs of each task that succeeded."""
    pods: dict[str, list[str]]
    """The pods of each task, one for each attempt."""

    @property
    def state(self) -> str:
        """The state of the whole run."""
        return "FAILED" if "FAILED" in self.states.values() else "SUCCEEDED"


class TaskFailed(Exception):
    """A task that has no attempts left."""


class PodPipeline:
    """One run of a compiled pipeline."""

    def __init__(
        self, job: Job, compiled: Compiled, started: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        self._job = job
        self._compiled = compiled
        self._started = started
        """Called with each pod's task and name."""
        self._ran = Ran({}, {}, {})

    def run(self, **arguments: str) -> Ran:
        """Runs it to its end; a task's failure is in the result and not raised."""
        root = self._compiled.spec["root"]
        inputs = root["inputDefinitions"]["parameters"]
        assert arguments.keys() <= inputs.keys(), arguments
        values = {name: arguments.get(name, p.get("defaultValue")) for name, p in inputs.items()}
        assert None not in values.values(), f"a parameter is missing: {values}"
        self._run_tasks(root["dag"]["tasks"], values)
        return self._ran

    def _run_tasks(self, tasks: Tree, inputs: Values) -> None:
        """Runs all tasks of one graph; after a failure, only exit handlers."""
        for name, task in _in_order(tasks):
            assert task.keys() <= _KNOWN_OF_TASK, task.keys() - _KNOWN_OF_TASK
            policy = task.get("triggerPolicy", {})
            is_exit_handler = policy.get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED"
            states = [self._ran.states[item] for item in task.get("dependentTasks", [])]
            if not is_exit_handler and any(item != "SUCCEEDED" for item in states):
                self._leave(name, task)
                continue
            values = self._values(task.get("inputs", {}).get("parameters", {}), inputs)
            if "condition" in policy and not _is_true(policy["condition"], values):
                self._leave(name, task)
                continue
            self._run_task(name, task, values)

    def _run_task(self, name: str, task: Tree, values: Values) -> None:
        component = self._compiled.spec["components"][task["componentRef"]["name"]]
        if "dag" in component:
            inner_tasks = component["dag"]["tasks"]
            self._run_tasks(inner_tasks, values)
            has_failed = any(self._ran.states[item] == "FAILED" for item in inner_tasks)
            self._ran.states[name] = "FAILED" if has_failed else "SUCCEEDED"
            return
        try:
            self._ran.outputs[name] = self._attempts(name, task, component, values)
            self._ran.states[name] = "SUCCEEDED"
        except TaskFailed:
            self._ran.states[name] = "FAILED"

    def _leave(self, name: str, task: Tree) -> None:
        self._ran.states[name] = "SKIPPED"
        component = self._compiled.spec["components"][task["componentRef"]["name"]]
        for inner_name, inner_task in component.get("dag", {"tasks": {}})["tasks"].items():
            self._leave(inner_name, inner_task)

    def _values(self, parameters: Tree, inputs: Values) -> Values:
        return {name: self._value(source, inputs) for name, source in parameters.items()}

    def _value(self, source: Tree, inputs: Values) -> Any:
        ((kind, value),) = source.items()
        if kind == "runtimeValue":
            return value["constant"].replace("{{$.pipeline_job_uuid}}", self._job.id)
        if kind == "componentInputParameter":
            return inputs[value]
        if kind == "taskOutputParameter":
            return self._ran.outputs[value["producerTask"]][value["outputParameterKey"]]
        assert kind == "taskFinalStatus", kind
        failed_tasks = [name for name, state in self._ran.states.items() if state == "FAILED"]
        error = {"code": 9, "message": f"task {failed_tasks[0]} failed"} if failed_tasks else {}
        return {
            "state": self._ran.states[value["producerTask"]],
            "pipelineJobResourceName": self._job.id,
            "pipelineTaskName": value["producerTask"],
            "error": error,
        }

    def _attempts(self, name: str, task: Tree, component: Tree, values: Values) -> Values:
        parameters = component.get("outputDefinitions", {}).get("parameters", {})
        attempts = 1 + task.get("retryPolicy", {}).get("maxRetryCount", 0)
        for attempt in range(attempts):
            pod = f"{self._job.id}-{name}-{attempt}".replace("_", "-").lower()
            self._ran.pods.setdefault(name, []).append(pod)
            outputs = self._job.outputs / pod
            outputs.mkdir()
            outputs.chmod(0o777)
            executor_input = _executor_input(values, parameters)
            manifest = self._pod(pod, component["executorLabel"], executor_input)
            self._job.core.create_namespaced_pod(self._job.namespace, manifest)
            self._started(name, pod)
            if self._succeeds(pod):
                results = _made(outputs)
                assert results.keys() == parameters.keys(), results
                return results
        raise TaskFailed(name)

    def _succeeds(self, pod: str) -> bool:
        """Waits for a pod to end; a deleted one has failed, as after the loss of its node."""
        wait_for(lambda: self._phase(pod) in ("Succeeded", "Failed", "Gone"), JOB_DEADLINE)
        return self._phase(pod) == "Succeeded"

    def _phase(self, pod: str) -> str:
        try:
            pod_object = self._job.core.read_namespaced_pod(pod, self._job.namespace)
        except ApiException as error:
            if error.status != 404:
                raise
            return "Gone"
        return str(pod_object.status.phase)

    def _pod(self, name: str, executor: str, executor_input: Tree) -> Tree:
        container = self._compiled.spec["deploymentSpec"]["executors"][executor]["container"]
        assert container.keys() <= _KNOWN_OF_CONTAINER, container.keys()
        config = self._compiled.pod(executor.removeprefix("exec-"))
        assert config.keys() <= _KNOWN_OF_POD, config.keys() - _KNOWN_OF_POD
        arguments = [
            json.dumps(executor_input) if item == "{{$}}" else item for item in container["args"]
        ]
        return {
            "metadata": {"name": name, "labels": {"pipeline/runid": self._job.id}},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": self._job.account,
                "terminationGracePeriodSeconds": 30,
                "nodeSelector": config.get("nodeSelector", {}).get("labels", {}),
                "securityContext": kfp_security.POD,
                "containers": [
                    {
                        "name": "main",
                        "image": container["image"],
                        "imagePullPolicy": self._job.image_pull_policy,
                        "command": container["command"],
                        "args": arguments,
                        "env": list(_environment(container, config)),
                        "resources": _resources(container.get("resources", {})),
                        # As Kubeflow's, with a read-only root.
                        "securityContext": {
                            **kfp_security.container_security(config),
                            "readOnlyRootFilesystem": True,
                        },
                        "volumeMounts": [
                            {"name": "tmp", "mountPath": "/tmp"},
                            {"name": "outputs", "mountPath": OUTPUTS},
                            *(
                                {"name": item["constant"], "mountPath": item["mountPath"]}
                                for item in config.get("pvcMount", [])
                            ),
                        ],
                    }
                ],
                "volumes": [
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "outputs", "hostPath": {"path": str(self._job.outputs / name)}},
                    *(
                        {
                            "name": item["constant"],
                            "persistentVolumeClaim": {"claimName": item["constant"]},
                        }
                        for item in config.get("pvcMount", [])
                    ),
                ],
            },
        }


def _in_order(tasks: Tree) -> Iterator[tuple[str, Tree]]:
    """Each task after all that it depends on."""
    rest = dict(tasks)
    while rest:
        ready = [n for n, task in rest.items() if not rest.keys() & set(_waits_for(task))]
        assert ready, f"these wait for one another: {sorted(rest)}"
        for name in ready:
            yield name, rest.pop(name)


def _waits_for(task: Tree) -> list[str]:
    return list(task.get("dependentTasks", []))


def _is_true(condition: str, values: Values) -> bool:
    match = _SAYS.fullmatch(condition)
    assert match, f"not understood: {condition}"
    return bool(values[match[1]] == match[2])


def _executor_input(values: Values, outputs: Tree) -> Tree:
    return {
        "inputs": {"parameterValues": values},
        "outputs": {
            "parameters": {name: {"outputFile": f"{OUTPUTS}/{name}"} for name in outputs},
            "outputFile": f"{OUTPUTS}/{_EXECUTOR_OUTPUT}",
        },
    }


def _made(outputs: Path) -> Values:
    """A component's outputs, as the launcher reads them; empty if there are none."""
    file = outputs / _EXECUTOR_OUTPUT
    return dict(json.loads(file.read_text())["parameterValues"]) if file.exists() else {}


def _environment(container: Tree, config: Tree) -> Iterator[Tree]:
    yield from container.get("env", [])
    for secret in config.get("secretAsEnv", []):
        for pair in secret["keyToEnv"]:
            key = {"name": secret["secretName"], "key": pair["secretKey"]}
            yield {"name": pair["envVar"], "valueFrom": {"secretKeyRef": key}}


def _resources(resources: Tree) -> Tree:
    names = {
        "requests": {"cpu": "resourceCpuRequest", "memory": "resourceMemoryRequest"},
        "limits": {"cpu": "resourceCpuLimit", "memory": "resourceMemoryLimit"},
    }
    return {
        kind: {resource: resources[key] for resource, key in keys.items() if key in resources}
        for kind, keys in names.items()
    }
