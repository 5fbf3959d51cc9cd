"""The policy that the docs ship, as a real cluster understands it."""

from pathlib import Path

import pytest
import yaml

POLICY = Path(__file__).parents[3] / "docs/operate/network-policy.yaml"

pytestmark = pytest.mark.slow


def test_the_cluster_takes_the_policy_and_lets_nobody_but_the_service_reach_an_engine(
    control_plane,
):
    from kubernetes import client

    network = client.NetworkingV1Api(control_plane.client)
    asked = yaml.safe_load(POLICY.read_text())
    taken = network.create_namespaced_network_policy("default", asked, dry_run="All").spec
    name = {"app.kubernetes.io/name": "agentworld"}
    part = "app.kubernetes.io/component"
    assert taken.pod_selector.match_labels == {**name, part: "engine"}
    assert taken.policy_types == ["Ingress"]
    (rule,) = taken.ingress
    (peer,) = rule._from
    assert peer.pod_selector.match_labels == {**name, part: "simulator"}
    assert (peer.namespace_selector, peer.ip_block) == (None, None)
