"""The building blocks of a bill of materials: components, hashes, licences, properties.

Unknown values are left out: no part has an empty field or a placeholder.
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
"""The prefix of our properties' names."""
_LICENCE_ID = re.compile(r"(?!LicenseRef-)[\w.-]+", re.ASCII)
_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%"
"""The characters of an address besides letters and digits."""
_SHORT = 12


class Inventory:
    """The components and services of a bill, each once, with their dependencies."""

    def __init__(self) -> None:
        self.components: dict[str, Part] = {}
        """By reference."""
        self.services: dict[str, Part] = {}
        self._uses: dict[str, list[str]] = {}

    def add(self, part: Part, uses: Iterable[str] = (), *, is_service: bool = False) -> None:
        """Adds a part under its reference; if it exists, adds only its dependencies."""
        reference = str(part["bom-ref"])
        parts = self.services if is_service else self.components
        parts.setdefault(reference, part)
        # RL without any update ends with its starting weights.
        others = [other for other in uses if other != reference]
        self._uses.setdefault(reference, []).extend(others)

    @property
    def dependencies(self) -> list[JsonValue]:
        """An entry for each part with known dependencies in the bill."""
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
    """A component whose reference is its digest; `covers` says which bytes the digest is over.

    Null and empty `fields` are left out.
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
    """A digest in CycloneDX's form."""
    return [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]


def to_iri(address: str) -> str:
    """An address without secrets, in the characters that CycloneDX allows."""
    return quote(redact(address), safe=_OF_ADDRESSES)


def short(digest: Digest) -> str:
    """The start of a digest, as a name for unnamed parts."""
    return digest.removeprefix("sha256:")[:_SHORT]


def properties_of(values: Mapping[str, object]) -> list[JsonValue]:
    """Properties in our namespace: strings unchanged, other values as JSON.

    Null and empty values are left out; a list gives a property for each item.
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
    """Licences by their SPDX identifiers, or by name if they have none."""
    return [_licence(name) for name in sorted(names)]


def _licence(name: str) -> Part:
    try:
        expression = canonicalize_license_expression(name)
    except InvalidLicenseExpression:
        return {"license": {"name": name}}
    if _LICENCE_ID.fullmatch(expression):
        return {"license": {"id": expression}}
    return {"expression": expression}
