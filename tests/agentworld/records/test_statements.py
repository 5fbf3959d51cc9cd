"""The properties of every kind of signed statement, which all existing statements contain."""

from agentworld.records.statements.base import statement_kinds

SIGNED = {
    "alias": ("urn:agentworld:alias-change:v1", "alias-changes", ""),
    "edge": ("urn:agentworld:edge:v1", "agent-edges", "edge"),
    "erasure": ("urn:agentworld:erasure:v1", "episode-erasures", ""),
    "genesis": ("urn:agentworld:ledger-genesis:v1", "ledger-genesis", ""),
    "registration": ("urn:agentworld:registered-version:v1", "registered-versions", ""),
    "restore": ("urn:agentworld:restore:v1", "ledger-restores", ""),
    "validation": ("urn:agentworld:validation:v1", "live-validations", ""),
    "withdrawal": ("urn:agentworld:withdrawal:v1", "withdrawn-versions", ""),
}
"""By kind: the predicate's type, the folder of the copies, and the key that holds the record."""


def test_predicate_types_folders_and_keys_of_statement_kinds_are_stable():
    kinds = statement_kinds().items()
    assert {name: (kind.predicate_type, kind.folder, kind.field) for name, kind in kinds} == SIGNED


def test_each_statement_kind_is_registered_under_its_own_name():
    assert all(kind.kind == name for name, kind in statement_kinds().items())


def test_statement_folders_are_unique_and_contain_a_hyphen():
    folders = [kind.folder for kind in statement_kinds().values()]
    assert len(set(folders)) == len(folders)
    assert all("-" in folder for folder in folders)
