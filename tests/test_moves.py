"""A move is only a move, and a new name only a name: files do what they did before both."""

import json

from make.moves import MOVES, ROOT, tree_digest

# What had to change so that no package imports one above it (decision 0043); files where a name is
# also a text (__slots__, a template, a type variable); tests that find a file beside them.
CHANGED = {
    "operators/agentworld_operator/connection.py",
    "platform/agentworld/access/reloaded.py",
    "platform/agentworld/audit/checks/edges.py",
    "platform/agentworld/audit/checks/statements.py",
    "platform/agentworld/audit/questions/revalidation.py",
    "platform/agentworld/engine/attested.py",
    "platform/agentworld/http/schemas.py",
    "platform/agentworld/http/server.py",
    "platform/agentworld/lineage/mlflow_aliases.py",
    "platform/agentworld/pinning/seed_probe.py",
    "platform/agentworld/records/garbled.py",
    "platform/agentworld/serving/cluster_main.py",
    "platform/agentworld/serving/episodes/session.py",
    "platform/agentworld/serving/episodes/store.py",
    "platform/agentworld/serving/main.py",
    "platform/agentworld/serving/protocols/openenv.py",
    "platform/agentworld/serving/protocols/openenv_chain.py",
    "platform/agentworld/serving/protocols/openenv_session.py",
    "platform/agentworld/serving/service.py",
    "platform/agentworld/serving/setup.py",
    "platform/agentworld/signing/envelope.py",
    "platform/agentworld/steps/__init__.py",
    "platform/agentworld/train/together.py",
    "platform/agentworld_cli/verification.py",
    "platform/agentworld_cli/views.py",
    "platform/agentworld_console/answer.py",
    "platform/agentworld_console/app.py",
    "platform/agentworld_console/pages/episode.py",
    "platform/agentworld_console/pages/in_use.py",
    "platform/agentworld_console/pages/index.py",
    "platform/agentworld_console/pages/simulator.py",
    "tests/agentworld/http/test_protection.py",
    "tests/agentworld/runner/test_remote.py",
    "tests/agentworld/serving/episodes/test_owners.py",
    "tests/agentworld/serving/episodes/test_session.py",
    "tests/agentworld/serving/protocols/test_mcp.py",
    "tests/agentworld/serving/protocols/test_openapi.py",
    "tests/agentworld/serving/telemetry/test_dashboard.py",
    "tests/agentworld/serving/telemetry/test_metrics.py",
    "tests/agentworld/serving/test_local.py",
    "tests/agentworld/serving/test_secrets.py",
    "tests/agentworld_operator/policy/test_simulator.py",
    "tests/agentworld_pipelines/test_local.py",
    "tests/benchmarks/instant_simulator.py",
    "tests/lanes/flake.py",
    "tests/test_house.py",
}


def test_every_file_that_moved_does_what_it_did_but_for_those_that_are_listed_here():
    before = json.loads(MOVES.read_text())
    now = {file: tree_digest((ROOT / file).read_text(), {}) for file in before}
    assert {file for file in before if now[file] != before[file]} == CHANGED
