"""A view reads the fields that records write, and ignores fields that a newer release adds."""

import json

import pytest

from agentworld.cluster.records import base, serving, simulator, view
from agentworld.errors import Conflict
from make import records

MANIFEST = records.manifest()
RECORDS = {
    view.ReferenceView: simulator.Reference,
    view.IdentityView: simulator.Identity,
    view.ServingView: serving.Serving,
    view.SimulatorSpecView: simulator.SimulatorSpec,
    view.ConditionView: base.Condition,
    view.SimulatorStatusView: simulator.SimulatorStatus,
}


def simulator_object(**manifest: object):
    """A Simulator with the status of its operator."""
    spec = simulator.SimulatorSpec.model_validate(
        {
            "identity": {"manifest": json.loads(MANIFEST.canonical)},
            "serving": {"tenants": ["acme"], "weights": {"claim": "weights"}},
        }
    ).model_dump(mode="json", exclude_none=True)
    spec["identity"]["manifest"] = json.loads(MANIFEST.canonical) | manifest
    condition = base.Condition(
        type="Verified",
        status="False",
        reason="Differs",
        message="a file differs",
        observed_generation=2,
        last_transition_time="2026-01-01T00:00:00Z",
    )
    status = simulator.SimulatorStatus(
        observed_generation=2,
        digest=MANIFEST.digest,
        accelerators=("cpu",),
        conditions=(condition,),
    ).model_dump(mode="json")
    metadata = {"name": "one", "uid": "1", "generation": 2, "creationTimestamp": "2026-01-01"}
    return {"metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(("view_type", "record"), RECORDS.items(), ids=lambda kind: kind.__name__)
def test_every_field_of_a_view_is_a_field_of_its_record(view_type, record):
    aliases = {name: field.alias for name, field in record.model_fields.items()}
    assert {name: field.alias for name, field in view_type.model_fields.items()}.items() <= (
        aliases.items()
    )


def test_every_view_of_a_part_is_compared_with_a_record():
    other_views = {view.MetadataView, view.SimulatorView}
    assert set(view.View.__subclasses__()) == RECORDS.keys() | other_views


def test_a_view_of_a_simulator_has_the_written_values():
    result = view.parse_object(view.SimulatorView, simulator_object())
    assert result.spec.identity.manifest == MANIFEST
    assert (result.spec.serving.tenants, result.status.accelerators) == (("acme",), ("cpu",))
    assert (result.status.digest, result.refusal) == (MANIFEST.digest, "a file differs")
    assert result.metadata.generation == result.status.observed_generation == 2


def test_fields_of_a_newer_release_are_ignored_at_every_level():
    content = simulator_object()
    spec, status = content["spec"], content["status"]
    parts = [content, content["metadata"], spec, spec["identity"], spec["serving"], status]
    for part in [*parts, *status["conditions"]]:
        part["newer"] = {"of": "another release"}
    spec["serving"]["weights"] = {"registry": "of a kind that this release cannot read"}
    assert view.parse_object(view.SimulatorView, content) == view.parse_object(
        view.SimulatorView, simulator_object()
    )


def test_an_unknown_field_of_a_manifest_is_refused():
    with pytest.raises(Conflict, match=r"one in the cluster is wrong at spec\.identity\.manifest"):
        view.parse_object(view.SimulatorView, simulator_object(newer=True))
