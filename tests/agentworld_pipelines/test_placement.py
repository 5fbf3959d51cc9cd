import pytest

from agentworld.errors import InputError
from agentworld_pipelines.placement import Placement, load_placement

DEFAULT = """
default:
  node_selector: {pool: cpu}
  accelerator: {type: nvidia.com/gpu, count: 2}
  volumes: {stores: /stores}
  environment: {THREADS: 4}
"""


def load(tmp_path, text: str) -> Placement:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return load_placement(path)


def test_a_step_without_its_own_place_uses_the_default(tmp_path):
    placement = load(tmp_path, DEFAULT)
    assert placement.of("rl") == placement.default


def test_each_field_of_a_step_replaces_the_default_field_completely(tmp_path):
    place = load(tmp_path, DEFAULT + "steps: {rl: {node_selector: {zone: a}, queue: gpus}}").of(
        "rl"
    )
    assert place.node_selector == {"zone": "a"}
    assert place.queue == "gpus"
    assert place.volumes == {"stores": "/stores"}


def test_steps_run_by_other_pods_may_have_their_own_service_account(tmp_path):
    places = "rl: {nodes: {count: 1}, service_account: a}, validate: {service_account: b}"
    placement = load(tmp_path, f"default: {{service_account: c}}\nsteps: {{{places}, audit: {{}}}}")
    steps = ("rl", "validate", "measure", "audit")
    assert [placement.of(step).service_account for step in steps] == ["a", "b", "c", "c"]
    assert {placement.of(step).own_pod.service_account for step in steps} == {None}


def test_a_label_of_a_domain_similar_to_a_reserved_domain_is_accepted(tmp_path):
    labels = "{my-kubernetes.io/a: b, kubernetes.io.example/a: b, kubernetes.io: b, team: c}"
    place = load(tmp_path, f"default: {{labels: {labels}}}").of("rl")
    keys = {"my-kubernetes.io/a", "kubernetes.io.example/a", "kubernetes.io", "team"}
    assert place.labels.keys() == keys


def test_null_removes_the_default_accelerator(tmp_path):
    placement = load(tmp_path, DEFAULT + "steps: {audit: {accelerator: null}}")
    assert placement.of("audit").accelerator is None
    assert placement.of("rl").accelerator.count == 2


def test_a_number_is_accepted_as_its_text(tmp_path):
    place = load(tmp_path, DEFAULT + "steps: {rl: {limits: {cpu: 0.5}}}").of("rl")
    assert place.limits.cpu == "0.5"
    assert place.environment == {"THREADS": "4"}


def test_several_nodes_start_a_process_for_each_device_by_default(tmp_path):
    text = DEFAULT + "steps: {rl: {nodes: {count: 4}}, cpt: {nodes: {count: 2}, accelerator: null}}"
    placement = load(tmp_path, text)
    assert placement.of("rl").processes_per_node == 2
    assert placement.of("cpt").processes_per_node == 1
    assert (
        load(tmp_path, text.replace("4}", "4, processes_per_node: 3}")).of("rl").processes_per_node
        == 3
    )


def test_a_step_without_its_own_image_uses_the_placements_image(tmp_path):
    placement = load(tmp_path, "image: a:1\nsteps: {rl: {image: b:2}}")
    assert (placement.of("cpt").image, placement.of("rl").image) == ("a:1", "b:2")


PROBLEMS = {
    "steps: {rl: {nodes: {count: 0}}}": "at steps.rl.nodes.count",
    "steps: {rl: {nodes: {count: 1, runtime: a}}}": "one node has no runtime, and this one gives a",
    "steps: {rl: {nodes: {count: 2, processes_per_node: 0}}}": "nodes.processes_per_node",
    "steps: {rl: {nodes: {count: 2, launcher: mpi}}}": "at steps.rl.nodes.launcher",
    "steps: {rl: {image: two words}}": "at steps.rl.image",
    "steps: {evaluate: {nodes: {count: 2}}}": "evaluate has its own nodes, which only cpt",
    "default: {nodes: {count: 2}}": "default has its own nodes, which only cpt",
    "steps: {rl: {service_account: a}}": "rl has a service_account, which only collect, validate",
    "steps: {audit: {service_account: a}}": "audit has a service_account, which only collect",
    "default: {service_account: A b}": "at default.service_account",
    "default: {environment: {PET_NNODES: 2}}\nsteps: {rl: {nodes: {count: 2}}}": "rl gives PET_",
    "default: {node_selektor: {a: b}}": "at default.node_selektor",
    "steps: {cpt: {quue: a}}": "at steps.cpt.quue: there is no such field; did you mean queue?",
    "default: {accelerator: {type: a.b/c, zzz: 1}}": "leave it out, or write one of: type, count",
    "imagge: x": "at imagge",
    "image: two words": "at image",
    "steps: {trian: {}}": "there is no such step; steps are collect, prepare, traces,",
    "steps: {rl: {requests: {cpu: 0}}}": "at steps.rl.requests.cpu",
    "steps: {rl: {requests: {memory: 4096}}}": "at steps.rl.requests.memory",
    "steps: {rl: {limits: {memory: 64GB}}}": "at steps.rl.limits.memory",
    "steps: {rl: {limits: {nvidia.com/gpu: 1}}}": "at steps.rl.limits.nvidia.com/gpu",
    "default: {accelerator: {type: gpu}}": "at default.accelerator.type",
    "default: {accelerator: {type: nvidia.com/gpu, count: 0}}": "at default.accelerator.count",
    "default: {node_selector: {gpu: true}}": "at default.node_selector.gpu",
    "default: {node_selector: {zone: 12e4}}": "zone: it should be a valid string (got '12e4'); put",
    "default: {node_selector: {-a: b}}": "at default.node_selector.-a",
    "default: {volumes: {stores: data}}": "at default.volumes.stores",
    "default: {volumes: {Stores: /data}}": "at default.volumes.Stores",
    "default: {environment: {A-B: c}}": "at default.environment.A-B",
    "default: {secrets: {s3: {key: 1A}}}": "at default.secrets.s3.key",
    "default: {queue: Two Words}": "at default.queue",
    "default: {labels: {kueue.x-k8s.io/queue-name: a}}": "for Kueue queue and priority_class",
    "default: {labels: {k8s.io/a: b}}": "k8s.io/a is set by others; take another label",
    "default: {labels: {app.kubernetes.io/name: b}}": "app.kubernetes.io/name is set by others",
    "default: {labels: {trainer.kubeflow.org/a: b}}": "trainer.kubeflow.org/a is set by others",
    "default: {labels: {pipeline/runid: b}}": "pipeline/runid is set by others",
    "default: {labels: {workflows.argoproj.io/a: b}}": "workflows.argoproj.io/a is set by others",
    "default: {labels: {agentworld.dev/step: b}}": "agentworld.dev/step is set by others",
    "steps: {rl: {labels: {job-name: b}}}": "job-name is set by others",
    "default: {labels: {team: two words}}": "at default.labels.team",
    "default: {retries: {times: 0}}": "at default.retries.times",
    "default: {retries: {wait_seconds: 5}}": "at default.retries.times",
    "default: {retries: {times: 3, factor: 1.5}}": "at default.retries.factor",
    "default: {retries: {times: 20}}": "the waits before 20 retries are 62914500 seconds",
    "default: {retries: {times: 1}, environment: {AGENTWORLD_RETRIES: x}}": "RETRIES twice",
    "default: {tolerations: [{value: x}]}": "write `operator: Exists`",
    "default: {tolerations: [{key: a, operator: Exists, value: x}]}": "leave the value out",
    "default: {tolerations: [{key: a, toleration_seconds: 9}]}": "effect: NoExecute",
    "default: {volumes: {a: /x, b: /x}}": "default gives /x twice",
    "default: {shared_memory: 1Gi, volumes: {a: /dev/shm}}": "default gives /dev/shm twice",
    "default: {environment: {A: b}, secrets: {s: {k: A}}}": "default gives A twice",
    "default: {shared_memory: 1Gi}\nsteps: {rl: {volumes: {a: /dev/shm}}}": "rl gives /dev/shm",
    "[]": "at the whole",
    "": "at the whole",
    "default: {": "is not YAML",
}


@pytest.mark.parametrize(("text", "problem"), PROBLEMS.items())
def test_an_invalid_placement_is_refused_with_one_sentence_naming_file_and_key(
    tmp_path, text, problem
):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert f"the placement {tmp_path / 'cluster.yaml'} is" in message
    assert problem in message
    assert "\n" not in message


def test_a_missing_placement_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the placement .*gone\.yaml: No such file"):
        load_placement(tmp_path / "gone.yaml")
