"""How the tests' Kubeflow Pipelines server reads requests and writes responses.

Both use the types of `kfp-server-api`: unknown fields are refused.
"""

import json
import re
from types import SimpleNamespace
from typing import Any

import kfp_server_api as api
from fastapi import Request, Response
from fastapi.responses import JSONResponse

_JSON = api.ApiClient(api.Configuration())
_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat".split()
_BOUNDS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_PART = re.compile(r"(?:[*?]|(\w+)(?:-(\w+))?)(?:/\d+)?")


class Refused(Exception):
    """A request that the real server also refuses."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def parsed(body: dict[str, Any], kind: str) -> Any:
    """Parses an object of the API from a request's body."""
    _refuse_unknown(body, kind)
    return _JSON.deserialize(SimpleNamespace(data=json.dumps(body)), kind)


def answered(value: Any) -> Response:
    return JSONResponse(_JSON.sanitize_for_serialization(value))


def listed(kind: str, records: dict[str, Any], request: Request, largest_page: int) -> Response:
    """A page of the query's results."""
    query = request.query_params
    experiment = query.get("experiment_id")
    items = [record for record in records.values() if _fits(record, query.get("filter"))]
    if experiment:
        items = [item for item in items if item.experiment_id == experiment]
    if query.get("sort_by") not in (None, "", "created_at desc"):
        raise Refused(400, f"invalid sorting field: {query['sort_by']}")
    items.sort(key=lambda entry: entry.created_at, reverse=bool(query.get("sort_by")))
    size = min(int(query.get("page_size") or 20), largest_page)
    first = int(query.get("page_token") or 0)
    page = getattr(api, f"V2beta1List{kind}Response")(total_size=len(items))
    setattr(page, next(iter(page.openapi_types)), items[first : first + size])
    if first + size < len(items):
        page.next_page_token = str(first + size)
    return answered(page)


def refuse_cron(text: str | None) -> None:
    """Seconds come first, and the day of the week is optional, as in robfig/cron 1."""
    fields = (text or "").split()
    if len(fields) not in (5, 6):
        raise Refused(400, f"Schedule cron is not a supported format: {text}")
    for field, (low, high) in zip(fields, _BOUNDS, strict=False):
        for part in field.split(","):
            match = _PART.fullmatch(part)
            ends = [end for end in match.groups() if end] if match else ["none"]
            numbers = [int(end) for end in ends if end.isdigit()]
            words = [end.lower() for end in ends if not end.isdigit()]
            fits = all(low <= number <= high for number in numbers) and set(words) <= set(_NAMES)
            if not fits or numbers != sorted(numbers):
                raise Refused(400, f"Schedule cron is not a supported format: {part}")


def _refuse_unknown(body: dict[str, Any], kind: str) -> None:
    model = getattr(api, kind)
    types = {alias: model.openapi_types[field] for field, alias in model.attribute_map.items()}
    for name, value in body.items():
        if name not in types:
            raise Refused(400, f'proto: unknown field "{name}" of {kind}')
        if isinstance(value, dict) and hasattr(api, types[name]):
            _refuse_unknown(value, types[name])


def _fits(record: Any, filter_: str | None) -> bool:
    """Supports the two predicates that are used."""
    fits = True
    for predicate in json.loads(filter_)["predicates"] if filter_ else []:
        match predicate:
            case {"operation": "EQUALS", "key": "display_name", "stringValue": name}:
                fits = fits and record.display_name == name
            case {"operation": "IN", "key": "state", "stringValues": {"values": states}}:
                fits = fits and record.state in states
            case _:
                raise Refused(400, f"invalid predicate: {predicate}")
    return fits
