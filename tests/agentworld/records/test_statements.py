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


def test_what_was_signed_is_read_and_found_by_these_words_for_ever():
    kinds = statement_kinds().items()
    assert {name: (each.predicate_type, each.folder, each.field) for name, each in kinds} == SIGNED


def test_a_kind_is_in_the_table_by_the_name_that_its_rows_have():
    assert all(kind.kind == name for name, kind in statement_kinds().items())


def test_no_two_kinds_have_a_folder_and_no_folder_is_called_like_a_run():
    folders = [kind.folder for kind in statement_kinds().values()]
    assert len(set(folders)) == len(folders)
    assert all("-" in folder for folder in folders)
