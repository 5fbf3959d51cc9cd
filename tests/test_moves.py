"""A move is only a move: files say what they said before the packages were cut anew."""

import json

from make.moves import MOVES, ROOT, tree_digest

# What had to change so that no package imports one above it (decision 0043), and tests that name
# a module in a text, or find a file beside them.
CHANGED = {
    "platform/agentworld/http/schemas.py",
    "platform/agentworld/http/server.py",
    "platform/agentworld/pinning/seed_probe.py",
    "platform/agentworld/serving/cluster_main.py",
    "platform/agentworld/serving/episodes/session.py",
    "platform/agentworld/serving/episodes/store.py",
    "platform/agentworld/serving/main.py",
    "platform/agentworld/serving/service.py",
    "platform/agentworld/serving/setup.py",
    "platform/agentworld/steps/__init__.py",
    "tests/agentworld/audit/checks/test_edges.py",
    "tests/agentworld/http/test_protection.py",
    "tests/agentworld/operations/test_probe.py",
    "tests/agentworld/pinning/test_manifest.py",
    "tests/agentworld/records/test_round_trip.py",
    "tests/agentworld/serving/episodes/test_session.py",
    "tests/agentworld/serving/protocols/test_mcp.py",
    "tests/agentworld/serving/protocols/test_openapi.py",
    "tests/agentworld/serving/test_local.py",
    "tests/agentworld/serving/telemetry/test_dashboard.py",
    "tests/agentworld/serving/telemetry/test_metrics.py",
    "tests/agentworld/serving/test_secrets.py",
    "tests/agentworld/serving/test_versions.py",
    "tests/agentworld_cli/test_audit.py",
    "tests/agentworld_cli/test_escaping.py",
    "tests/agentworld_cli/test_withdrawn.py",
    "tests/agentworld_pipelines/test_local.py",
    "tests/benchmarks/instant_simulator.py",
    "tests/make/served.py",
    "tests/make/service.py",
    "tests/test_house.py",
}


def test_every_file_that_moved_says_what_it_said_but_for_those_that_are_named_here():
    before = json.loads(MOVES.read_text())
    now = {file: tree_digest((ROOT / file).read_text(), {})[:16] for file in before}
    assert {file for file in before if now[file] != before[file]} == CHANGED
