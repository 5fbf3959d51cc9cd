"""The parts that a bill of materials is built of: components, hashes, licences, properties.

What is unknown is left out: no part has an empty field or a placeholder.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from pydantic import JsonValue

from agentworld.records.base import Digest, canonical_json
from agentworld.records.garbled import redact

Part = dict[str, JsonValue]

MODEL = "machine-learning-model"
NAMESPACE = "agentworld"
"""Of the names of our properties."""
_LICENCE_ID = re.compile(r"(?!LicenseRef-)[\w.-]+", re.ASCII)
_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%"
"""What an address may hold beside letters and digits."""
_SHORT = 12


class Inventory:
    """The components and services of a bill, each once, and what each depends on."""

    def __init__(self) -> None:
        self.components: dict[str, Part] = {}
        """By their references."""
        self.services: dict[str, Part] = {}
        self._uses: dict[str, list[str]] = {}

    def add(self, part: Part, uses: Iterable[str] = (), *, is_service: bool = False) -> None:
        """Adds a part by its reference, or only what it uses where the part is there already."""
        reference = str(part["bom-ref"])
        parts = self.services if is_service else self.components
        parts.setdefault(reference, part)
        # RL that changes nothing ends with the weights that it began with.
        others = [other for other in uses if other != reference]
        self._uses.setdefault(reference, []).extend(others)

    @property
    def dependencies(self) -> list[JsonValue]:
        """An entry for each part that is known to depend on others of the bill."""
        parts = self.components | self.services
        depends_on = {
            reference: list(dict.fromkeys(digest for digest in uses if digest in parts))
            for reference, uses in self._uses.items()
        }
        return [
            {"ref": reference, "dependsOn": [*uses]}
            for reference, uses in depends_on.items()
            if uses
        ]


def component(
    kind: str,
    name: str,
    digest: Digest,
    covers: str,
    properties: Mapping[str, object] | None = None,
    **fields: JsonValue,
) -> Part:
    """A component that its digest refers to; `covers` says which bytes that is over.

    Of `fields` those that are null or empty are left out.
    """
    optional: Part = {name: value for name, value in fields.items() if value}
    return {
        "type": kind,
        "bom-ref": digest,
        "name": name,
        **optional,
        "hashes": hashes(digest),
        "properties": properties_of({"digest-of": covers, **(properties or {})}),
    }


def hashes(digest: Digest) -> list[JsonValue]:
    """A digest of ours as CycloneDX writes it."""
    return [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]


def to_iri(address: str) -> str:
    """An address without secrets, in the characters that CycloneDX takes."""
    return quote(redact(address), safe=_OF_ADDRESSES)


def short(digest: Digest) -> str:
    """The start of a digest, for names of what has no other."""
    return digest.removeprefix("sha256:")[:_SHORT]


def properties_of(values: Mapping[str, object]) -> list[JsonValue]:
    """Properties in our namespace: a text as it is, anything else as JSON.

    A null and an empty value are left out; a list gives a property for each item.
    """
    properties: list[JsonValue] = []
    for name, value in values.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is None or item in ("", {}):
                continue
            text = item if isinstance(item, str) else canonical_json(item).decode()
            properties.append({"name": f"{NAMESPACE}:{name}", "value": text})
    return properties


def licences_of(names: Iterable[str]) -> list[JsonValue]:
    """Licences by their SPDX identifiers, or by the names that people gave where those are none."""
    return [_licence(name) for name in sorted(names)]


def _licence(name: str) -> Part:
    try:
        expression = canonicalize_license_expression(name)
    except InvalidLicenseExpression:
        return {"license": {"name": name}}
    if _LICENCE_ID.fullmatch(expression):
        return {"license": {"id": expression}}
    return {"expression": expression}
