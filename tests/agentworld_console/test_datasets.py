"""The uses of data: world models, simulators and agents."""

import csv
import io

import pytest

import make.console
from agentworld.lineage.base import WorldModel
from make import records

pytestmark = pytest.mark.compute

DATA = records.digest("data")
OTHER_DATA = records.digest("other data")


def rows(client, path):
    return list(csv.DictReader(io.StringIO(client.get(path).text)))


def test_a_data_set_page_shows_its_world_models_simulators_and_agents(auditor, content):
    text = auditor.get(f"/datasets/{DATA}").text
    for fragment in (DATA, "agentworld-shell@1", "cpt, sft, rl"):
        assert fragment in text
    for page in (
        f"/simulators/{content.simulator}",
        f"/runs/{content.run}",
        f"/agents/{content.agent}",
    ):
        assert f'href="{page}"' in text
    (simulator,) = rows(auditor, f"/datasets/{DATA}/simulators.csv")
    assert (simulator["simulator"], simulator["aliases"]) == (content.simulator, "shell-stable")
    runs = {row["run"]: row for row in rows(auditor, f"/datasets/{DATA}/runs.csv")}
    assert runs.keys() == {content.run, content.open_run, content.rival_run}
    assert runs[content.run]["registered agent"] == str(content.agent)


@pytest.mark.parametrize("page", ["agent", "simulator", "graph", "agent-graph"])
def test_pages_of_agents_simulators_and_graphs_link_their_data_set(auditor, content, page):
    assert f'href="/datasets/{DATA}"' in auditor.get(content.pages[page]).text


@pytest.mark.parametrize("name", [DATA, DATA[:15], DATA[7:15]], ids=["whole", "start", "hex"])
def test_a_search_for_a_digest_redirects_to_the_data_set(auditor, name):
    answer = auditor.get("/search", params={"q": name})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/datasets/{DATA}")


def test_a_digest_prefix_redirects_to_the_data_set_page(auditor):
    assert auditor.get(f"/datasets/{DATA[7:15]}").headers["location"] == f"/datasets/{DATA}"
    assert auditor.get(f"/datasets/{OTHER_DATA}").status_code == 404


def console_with_other_data(history, folder):
    """A console of a store with data of an unserved world model, and unused data."""
    stage = records.checkpoint("cpt", data=OTHER_DATA, artifact=records.digest("unserved"))
    world = WorldModel(stages=(stage,), report=records.digest("report"))
    history.library.registry.register_world_model("agentworld-unserved", world, folder)
    records.finished_step(folder, "prepare", records.digest("prepared"))
    return make.console.app(history.library, folder)


def test_an_auditor_sees_all_data_sets(copy, tmp_path):
    auditor = make.console.client(console_with_other_data(copy, tmp_path), "office-auditor")
    world_models = {row["data set"]: row["world models"] for row in rows(auditor, "/datasets.csv")}
    assert world_models == {
        DATA: "agentworld-shell@1",
        OTHER_DATA: "agentworld-unserved@1",
        records.digest("prepared"): "none",
    }
    assert (
        "You may see no simulator of this store that serves one"
        in auditor.get(f"/datasets/{OTHER_DATA}").text
    )


def train_on_base(history, folder, *, is_known=True):
    """Registers an agent of acme, trained with a world model whose base is `rival-world`.

    If `is_known`, `rival-world` is also registered as a world model.
    """
    registry, ledger = history.library.registry, history.library.ledger
    base = records.checkpoint("cpt", data=OTHER_DATA, artifact=records.digest("base"))
    fields = {"data": DATA, "artifact": records.digest("tuned"), "base": "models:/rival-world/1"}
    tuned = records.checkpoint("sft", parents=[base.artifact], **fields)
    worlds = {"rival-world": base} if is_known else {}
    for name, stage in {**worlds, "agentworld-tuned": tuned}.items():
        world = WorldModel(stages=(stage,), report=records.digest("report"))
        registry.register_world_model(name, world, folder)
    return make.console.register(
        ledger, registry, open_run(history, folder, tuned.artifact), folder
    )


def open_run(history, folder, weights):
    """Opens a run of acme with a simulator that serves these weights."""
    simulator = records.pinned(folder, artifact=weights).digest
    run = history.library.ledger.open_run(make.console.opening("acme"), simulator, tenant="acme").id
    make.console.play(history.library.ledger, run, simulator, "ls")
    return run


@pytest.mark.parametrize("is_served", [True, False])
def test_a_tenant_sees_the_name_of_a_base_only_if_its_runs_use_the_base(copy, tmp_path, is_served):
    agent = train_on_base(copy, tmp_path)
    if is_served:
        open_run(copy, tmp_path, records.digest("base"))
    app = make.console.app(copy.library, tmp_path)
    auditor, acme = (make.console.client(app, name) for name in ("office-auditor", "acme-agent"))
    for path in (f"/agents/{agent}", f"/datasets/{OTHER_DATA}"):
        assert "rival-world" in auditor.get(path).text
        text = acme.get(path).text
        assert "agentworld-tuned@1" in text
        assert ("rival-world" in text) == is_served


def test_a_tenant_sees_no_registry_address_of_a_base_that_is_no_world_model(copy, tmp_path):
    path = f"/agents/{train_on_base(copy, tmp_path, is_known=False)}"
    app = make.console.app(copy.library, tmp_path)
    assert "models:/rival-world/1" in make.console.client(app, "office-auditor").get(path).text
    text = make.console.client(app, "acme-agent").get(path).text
    assert "agentworld-tuned@1" in text
    assert "rival-world" not in text


def test_a_tenant_sees_only_the_data_behind_its_simulators(copy, tmp_path):
    app = console_with_other_data(copy, tmp_path)
    acme = make.console.client(app, "acme-agent")
    assert [row["data set"] for row in rows(acme, "/datasets.csv")] == [DATA]
    text = acme.get(f"/datasets/{OTHER_DATA}").text
    assert "unserved" not in text
    assert acme.get(f"/datasets/{OTHER_DATA[7:15]}").status_code == 404
    assert acme.get("/search", params={"q": OTHER_DATA[7:15]}).status_code == 404
    assert rows(acme, f"/datasets/{OTHER_DATA}/simulators.csv") == []
    assert {row["tenant"] for row in rows(acme, f"/datasets/{DATA}/runs.csv")} == {"acme"}
