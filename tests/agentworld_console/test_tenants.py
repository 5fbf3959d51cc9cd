import pytest

import make.console
from agentworld.access.base import Caller
from agentworld.ledger.aliases import Aliases, History
from agentworld_console.scoped_view import ScopedView


def rival_paths(history):
    """Paths of the rival's data."""
    return {
        "run": f"/runs/{history.rival_run}",
        "its episodes": f"/runs/{history.rival_run}/episodes.csv",
        "agent": f"/agents/{history.rival}",
        "its graph": f"/graph?agent={history.rival}",
        "its edges": f"/graph.csv?agent={history.rival}",
        "episode": f"/episodes/{history.rival_episode}",
        "its steps": f"/episodes/{history.rival_episode}.csv",
        "its forks": f"/episodes/{history.rival_episode}/forks.csv",
        "its opening": f"/episodes/{history.rival_episode}/opening.txt",
        "its texts": f"/episodes/{history.rival_episode}/1/action.txt",
    }


@pytest.mark.parametrize("kind", rival_paths(make.console.ConsoleStore(*"x" * 11)))
def test_records_of_other_tenants_are_answered_like_missing_records(acme, auditor, content, kind):
    path = rival_paths(content)[kind]
    rival_answer = acme.get(path)
    for name in (content.rival_run, str(content.rival), content.rival_episode):
        path = path.replace(name, "nobody@9" if "@" in name else "0" * 32)
    missing_answer = acme.get(path)
    assert (rival_answer.status_code, missing_answer.status_code) == (404, 404)
    for name in (content.rival_run, str(content.rival), content.rival_episode):
        rival_text = rival_answer.text.replace(name, "NAME")
        if name in rival_answer.text:
            assert rival_text.replace("NAME", "nobody@9" if "@" in name else "0" * 32) == (
                missing_answer.text
            )
    assert auditor.get(rival_paths(content)[kind]).status_code == 200


@pytest.mark.compute
def test_no_list_or_page_shows_data_of_another_tenant(acme, content):
    pages = [*content.pages.values(), "/agents.csv", "/simulators.csv", "/runs.csv", "/in-use.csv"]
    pages += [
        "/datasets.csv",
        *(f"{content.pages['dataset']}/{kind}.csv" for kind in ("runs", "simulators")),
    ]
    pages += [f"/simulators/{content.simulator}/{kind}.csv" for kind in ("runs", "aliases")]
    for path in [*pages, f"/graph.csv?simulator={content.simulator}"]:
        text = acme.get(path).text
        secrets = content.rival_run, str(content.rival), content.rival_episode, "rival", "office/jo"
        assert [secret for secret in secrets if secret in text] == [], path


def test_an_auditor_sees_records_of_all_tenants(auditor, content):
    runs = auditor.get("/runs.csv").text
    assert all(run in runs for run in (content.run, content.open_run, content.rival_run))
    assert str(content.rival) in auditor.get("/agents").text
    assert "office/jo" in auditor.get(f"/simulators/{content.simulator}").text


@pytest.mark.parametrize("name", ["rival_run", "rival", "rival_episode"])
def test_a_search_finds_nothing_of_another_tenant(acme, auditor, content, name):
    query = {"q": str(getattr(content, name))}
    assert acme.get("/search", params=query).status_code == 404
    assert auditor.get("/search", params=query).status_code == 303


def test_only_an_auditor_reads_the_history_of_aliases(content, monkeypatch):
    reads = []

    def read_history(_, kind):
        reads.append(kind)
        return History([], {})

    monkeypatch.setattr(Aliases, "readable_history", read_history)
    for role, kinds in (("agent", []), ("auditor", ["simulator"])):
        view = ScopedView(content.library, Caller("acme", "jo", frozenset({role})))
        assert view.alias_changes() == []
        assert reads == kinds
