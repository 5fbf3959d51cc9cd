"""Deletions of a SimulatorAlias, depending on the ledger's history of it."""

import asyncio
from types import SimpleNamespace

import pytest

from agentworld.records.statements.alias import AliasChange
from agentworld_operator.admission import Admission
from agentworld_operator.policy.admission import AdmissionRequest
from make import records
from make.simulator import NOW, alias, there


class Service:
    """A simulator service that has the last change of one alias."""

    def __init__(self, last):
        self._last = last
        self.ended = []

    async def last(self, _name):
        return self._last

    async def end(self, name, by, _key, request, *, dry_run):
        self.ended.append((name, by, request, dry_run))


def change(**fields):
    defaults = {"alias": "stable", "simulator": records.digest("one"), "set_by": "ada", "at": NOW}
    return AliasChange(**defaults, **fields)


def delete(last):
    service, kind = Service(last), {"group": "agentworld.dev", "kind": "SimulatorAlias"}
    request = AdmissionRequest.model_validate(
        {
            "uid": "1-2",
            "kind": kind | {"version": "v1alpha1"},
            "namespace": "worlds",
            "operation": "DELETE",
            "userInfo": {"username": "bob"},
            "oldObject": there(alias()),
        }
    )
    admission = Admission(SimpleNamespace(namespace="worlds"), service)
    assert asyncio.run(admission.decide(request)) is None
    return service.ended


def test_deleting_an_object_ends_an_alias_set_by_an_object():
    for request in ("uid-stable/1", "uid-another/7"):
        assert delete(change(request=request)) == [("stable", "bob", "uid-stable/1", False)]


@pytest.mark.parametrize("last", [None, change(), change(ended=True)])
def test_deleting_an_object_never_ends_an_alias_set_by_a_command(last):
    assert delete(last) == []
