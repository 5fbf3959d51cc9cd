"""An agent's bill of materials as a file, unsigned or signed."""

import json

from agentworld.audit.export.cyclonedx.bill import bill_of_materials
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import VersionRef
from agentworld.signing.bill_of_materials import sign_bill
from agentworld.signing.keys import SIMULATOR_KEYS, read_signer
from agentworld.storage.stores import Stores


def bill_as_text(ref: VersionRef, sources: Sources) -> str:
    """The CycloneDX document of a registered agent, in ASCII."""
    return json.dumps(bill_of_materials(ref, sources), indent=2)


def signed_bill(ref: VersionRef, sources: Sources) -> str:
    """The same as the predicate of an in-toto statement, signed with the store's own key.

    Raises NotFound if the store has no private key, as an auditor's copy.
    """
    signer = read_signer(Stores.keys_of(sources.store) / SIMULATOR_KEYS)
    bill = bill_of_materials(ref, sources)
    return sign_bill(bill, ref.name, sources.agent(ref).artifact, signer).decode()
