"""A TrainJob whose processes `mpirun` starts on two nodes, as Kubeflow's Trainer tells it to.

The nodes are network namespaces of this machine: the launcher, where the TrainJob's own command
runs, and one more, with the `sshd` of our image and nothing in its environment.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from agentworld.cluster.api_resources import Object
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.train_job import train_job
from make.training import Training

_SCRIPT = Path(__file__).with_suffix(".sh")
_ADDRESSES = {"launcher": "10.77.0.1", "node": "10.77.0.2"}
_RUNTIME = "agentworld-mpi"


def of_the_image() -> dict[str, str]:
    """What it says to a container's own command."""
    dockerfile = (Path(__file__).parents[2] / "Dockerfile").read_text()
    (said,) = re.findall(r" AS runtime\nENV ((?:.*\\\n)*.*)", dockerfile)
    return dict(word.split("=", 1) for word in said.replace("\\\n", "").split())


def built(given: Training, folder: Path, **environment: str) -> Object:
    """Of the stage `cpt`, for two nodes with a process each."""
    here = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", **environment}
    nodes = Nodes(count=2, launcher="mpi", runtime=_RUNTIME)
    return train_job("cpt", given, folder, Place(image="x", nodes=nodes, environment=here))


def launch(job: Object, folder: Path, hosts: tuple[str, ...]) -> subprocess.Popen[str]:
    """Starts the TrainJob's command; two processes share the hosts of Trainer's hostfile."""
    name, trainer = job["metadata"]["name"], job["spec"]["trainer"]
    folder.mkdir()
    _write_what_is_mounted(name, folder, hosts)
    told = {each["name"]: each["value"] for each in trainer["env"]}
    path = (str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin")
    environment = {
        **of_the_image(),
        "PATH": os.pathsep.join(path),
        **told,
        "OMPI_MCA_orte_default_hostfile": str(folder / "hostfile"),
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(trainer["numProcPerNode"]),
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }
    apart = ("unshare", "--user", "--map-root-user", "--net", "--", str(_SCRIPT), name, str(folder))
    return subprocess.Popen(
        [*apart, *trainer["command"], *trainer["args"]],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def _write_what_is_mounted(name: str, folder: Path, hosts: tuple[str, ...]) -> None:
    """Trainer's Secret and ConfigMap, and what Kubernetes and the image say of names and users."""
    key = folder / "ssh" / "id_rsa"
    key.parent.mkdir()
    command = ("ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-f", key)
    subprocess.run(command, check=True)
    (key.parent / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    (folder / "passwd").write_text("agentworld:x:65532:65532::/tmp:/bin/sh\n")
    named = [f"{address} {_host(name, job)}\n" for job, address in _ADDRESSES.items()]
    (folder / "hosts").write_text("".join(["127.0.0.1 localhost\n", *named]))
    slots = [f"{_host(name, job)} slots={2 // len(hosts)}\n" for job in hosts]
    (folder / "hostfile").write_text("".join(slots))


def _host(name: str, replicated_job: str) -> str:
    return f"{name}-{replicated_job}-0-0.{name}"
