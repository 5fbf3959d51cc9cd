import csv
import io
import re
import shlex

import pytest
from typer.testing import CliRunner

import make.console
from agentworld.lineage.base import Agent
from agentworld.storage.simulators import SimulatorStore
from agentworld_cli.main import app as command_line
from make import records

pytestmark = pytest.mark.compute

COMMAND = "On the command line: <code>agentworld ([^<]+)</code>"


def rows(client, path):
    return list(csv.DictReader(io.StringIO(client.get(path).text)))


@pytest.mark.parametrize("name", make.console.ConsoleStore(*"x" * 11).pages)
def test_every_page_has_strict_security_headers(auditor, content, name):
    answer = auditor.get(content.pages[name])
    assert answer.status_code == (404 if name == "search" else 200)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?! src=)| style=| on\w+=\"", answer.text)


@pytest.mark.parametrize("name", ["agent", "simulator", "dataset", "run", "episode"])
def test_a_page_shows_its_command_line_commands(auditor, content, name):
    commands = re.findall(COMMAND, auditor.get(content.pages[name]).text)
    assert {command.split()[-1] for command in commands} == {content.pages[name].rpartition("/")[2]}
    for command in commands:
        assert CliRunner().invoke(command_line, [*shlex.split(command), "--help"]).exit_code == 0


@pytest.mark.parametrize(
    "name", ["agents", "in-use", "datasets", "simulators", "runs", "graph", "agent-graph"]
)
def test_a_list_and_a_graph_show_their_command_line_command(auditor, content, name):
    (command,) = re.findall(COMMAND, auditor.get(content.pages[name]).text)
    assert CliRunner().invoke(command_line, [*shlex.split(command), "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("audit agent", "agent"),
        ("audit simulator", "simulator"),
        ("audit dataset", "dataset"),
        ("run show", "run"),
        ("episode show", "episode"),
    ],
)
def test_the_help_of_a_command_names_its_console_page(content, command, name):
    help_text = CliRunner().invoke(command_line, [*command.split(), "--help"]).output
    address = content.pages[name].rpartition("/")[0]
    assert f"In the console: {address}/" in " ".join(help_text.split())


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_the_console_is_read_only(auditor, content, method):
    assert getattr(auditor, method)(f"/runs/{content.run}").status_code == 405


def test_an_agents_page_shows_its_chain_grade_and_gap(auditor, content):
    text = auditor.get(f"/agents/{content.agent}").text
    for fragment in (content.run, content.simulator, "agentworld-shell@1", records.digest("data")):
        assert fragment in text
    assert '<span class="grade">observed</span>' in text
    assert "3 episodes and 3 steps as signed, 1 more copied by forks<br>" in text
    assert re.search(r"\+0\.050\s+<span class=\"soft\">-0\.09 to \+0\.19", text)


def test_agents_show_grade_live_success_and_simulator_alias(auditor, content):
    (row,) = [row for row in rows(auditor, "/agents.csv") if row["agent"] == str(content.agent)]
    live = "0.500 (0.40 to 0.60)"
    assert (row["grade"], row["live success"], row["simulator"]) == (
        *("observed", live),
        content.simulator,
    )
    link = f'<a href="/simulators/{content.simulator}" title="{content.simulator}">shell-stable</a>'
    assert link in auditor.get("/agents").text
    page = auditor.get(f"/agents/{content.agent}").text
    assert link in page
    interval = r'0\.500 <span class="soft">0\.40 to 0\.60</span>'
    assert re.search(rf"trained agent</dt><dd>50 of 100 tasks:\s+{interval}", page)


def test_an_agent_without_a_readable_validation_is_still_listed(copy, tmp_path):
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    for report in copy.library.store.glob("steps/validate/*/report.json"):
        report.write_text("{")
    assert {row["live success"] for row in rows(auditor, "/agents.csv")} == {"cannot be read"}
    for receipt in copy.library.store.glob("steps/validate/*/receipt.json"):
        receipt.unlink()
    assert {row["live success"] for row in rows(auditor, "/agents.csv")} == {"not validated"}


def test_a_changed_run_record_disputes_the_agent(copy, tmp_path):
    with copy.library.ledger._database.engine.begin() as database:
        database.exec_driver_sql("UPDATE steps SET reward = 1")
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/agents/{copy.agent}").text
    assert '<span class="grade">disputed</span>' in text
    assert "broken" in auditor.get(f"/runs/{copy.run}").text
    assert "broken" in auditor.get(f"/episodes/{copy.episode}").text


def test_an_agent_in_use_needs_revalidation_after_its_simulator_alias_moved(copy, tmp_path):
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")

    def text():
        return auditor.get(f"/agents/{copy.agent}").text

    assert "In use as shop; its validation is current" in text()
    copy.move_on()
    assert "To be revalidated" in text()
    assert f"shell-stable moved from {copy.simulator} to {records.digest('next')}" in text()


def test_an_agent_without_a_validation_is_incomplete_and_not_broken(copy, tmp_path):
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    assert "<h2>Incomplete</h2>" not in auditor.get(f"/agents/{copy.agent}").text
    for receipt in copy.library.store.glob("steps/validate/*/receipt.json"):
        receipt.unlink()
    text = auditor.get(f"/agents/{copy.agent}").text
    assert "<h2>Incomplete</h2>" in text
    assert "<li>the agent was not validated live</li>" in text
    assert "<h2>Breaks</h2>" not in text


def test_a_garbled_validation_is_shown_as_a_break(copy, tmp_path):
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    for report in copy.library.store.glob("steps/validate/*/report.json"):
        report.write_text("{")
    answer = auditor.get(f"/agents/{copy.agent}")
    assert answer.status_code == 200
    assert "<h2>Breaks</h2>" in answer.text
    assert "a live validation cannot be read" in answer.text


def test_an_agent_version_without_a_run_tag_is_not_listed(copy, tmp_path):
    copy.library.registry.version(copy.agent).tags.pop("run")
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    for path in ("/", "/agents", f"/simulators/{copy.simulator}"):
        assert auditor.get(path).status_code == 200
    assert f"/agents/{copy.agent}" not in auditor.get("/agents").text


def test_an_agent_whose_run_is_missing_is_shown_only_to_the_auditor(copy, tmp_path):
    checkpoint = records.checkpoint("agent", simulator=copy.simulator)
    ref = copy.library.registry.register_agent(
        "lost", Agent(checkpoint=checkpoint, run="gone"), tmp_path
    )
    app = make.console.app(copy.library, tmp_path)
    text = make.console.client(app, "office-auditor").get(f"/agents/{ref}").text
    assert "its run gone is not in the ledger" in text
    assert make.console.client(app, "acme-agent").get(f"/agents/{ref}").status_code == 404
    assert make.console.client(app, "office-auditor").get(f"/graph?agent={ref}").status_code == 200


def test_a_simulators_page_shows_its_identity_runs_and_agents(auditor, content):
    text = auditor.get(f"/simulators/{content.simulator}").text
    short = content.simulator[7:19]
    assert f'<h1>shell-stable <code class="soft">{short}</code></h1>' in text
    for fragment in ("agentworld-shell@1", "transformers-serve 5.19.0"):
        assert fragment in text
    for link in (content.run, content.open_run, content.rival_run):
        assert f'href="/runs/{link}"' in text
    assert f'href="/agents/{content.agent}"' in text
    assert "1 open episode" in text
    assert "free_running.exact_match" in text


def test_headline_figures_of_a_simulator_come_before_group_figures(copy, tmp_path):
    estimate = records.estimate(0.7).model_copy(update={"holes": 3})
    free_running = {"exact_match": estimate, "by_tag": {"ls": records.estimate(0.2)}}
    simulator = SimulatorStore(copy.library.store).find(copy.simulator)
    simulator.attach(records.served_report(job="tags", free_running=free_running))
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/simulators/{copy.simulator}").text
    first, _, folded = text.partition("<summary>1 figure of groups, leads and gains</summary>")
    assert "Served simulator on fresh live episodes" in first
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)<', first)[-4:] == [
        *("Figure", "Mean and 95 % interval", "Turns", "Without verdict"),
    ]
    assert "free_running.by_tag.ls" not in first
    assert "free_running.by_tag.ls" in folded
    assert "Without verdict" not in folded


def test_a_lead_shows_its_sign_and_explains_its_baseline(copy, tmp_path):
    simulator = SimulatorStore(copy.library.store).find(copy.simulator)
    simulator.attach(records.grouped_report(simulator.manifest.artifact, lead=0.02))
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/simulators/{copy.simulator}").text
    (row,) = re.findall(r'<th scope="row">leads.copy.exact_match</th>(.*?)</tr>', text, re.S)
    assert "+0.020" in row
    assert "-0.03 to +0.07, no difference seen" in row
    assert "copy predicts the last observation again; repeat predicts what" in text


def test_a_runs_page_shows_its_record_state_and_its_episodes(auditor, content):
    text = auditor.get(f"/runs/{content.run}").text
    assert '<span class="state good">verified</span>' in text
    for episode in (content.episode, content.fork, content.erased):
        assert f'href="/episodes/{episode}"' in text
    assert content.open_run not in text


def test_a_page_omits_columns_with_the_same_value_in_every_row(auditor, acme, content):
    def columns(client, path):
        return re.findall(r'<th scope="col"[^>]*>([^<]+)<', client.get(path).text)

    assert "Tenant" in columns(auditor, "/runs")
    assert "Tenant" not in columns(acme, "/runs")
    assert {"Copied steps", "Low confidence", "Texts"} <= {*columns(acme, f"/runs/{content.run}")}
    assert not {"Copied steps", "Texts"} & {*columns(acme, f"/runs/{content.open_run}")}
    assert "Simulator" not in columns(auditor, f"/simulators/{content.simulator}")
    assert "<dt>Tenant</dt><dd>acme</dd>" in auditor.get(f"/runs/{content.run}").text
    assert "<dt>Tenant</dt>" not in acme.get(f"/runs/{content.run}").text


def test_a_long_record_is_checked_only_on_request(auditor, content, monkeypatch):
    monkeypatch.setattr("agentworld_console.scoped_view._LONG_LOG", 2)
    for path in (
        f"/runs/{content.run}",
        f"/agents/{content.agent}",
        f"/episodes/{content.episode}",
    ):
        assert "check it now" in auditor.get(path).text
        assert "check it now" not in auditor.get(f"{path}?check=1").text


def test_an_episode_page_shows_each_step(auditor, content):
    text = auditor.get(f"/episodes/{content.episode}").text
    assert [int(n) for n in re.findall(r">Step (\d+)<", text)] == [1, 2]
    assert text.count(">low confidence<") == 1
    assert "reward 0.5" in text
    assert "1,200 tokens in (1,024 cached), 24 out" in text


def test_a_fork_page_links_its_source_episode(auditor, content):
    text = auditor.get(f"/episodes/{content.fork}").text
    assert f'the first step of <a href="/episodes/{content.episode}">' in text


def test_erased_texts_are_shown_as_erased(auditor, content):
    text = auditor.get(f"/episodes/{content.erased}").text
    assert text.count("Erased by retention") == 2
    assert "forgotten" not in text
    assert "(erased)" in auditor.get(f"/episodes/{content.erased}.csv").text


def test_run_lists_are_paged_and_the_csv_contains_all_runs(copy, tmp_path):
    runs = [
        copy.library.ledger.open_run(make.console.opening("acme"), copy.simulator, tenant="acme")
        for _ in range(60)
    ]
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    run_ids, path = [], "/runs"
    while path:
        text = auditor.get(path).text
        run_ids += re.findall(
            r'<th scope="row"><a href="/runs/(\w+)"', re.sub(r">\s+<", "><", text)
        )
        next_link = re.search(r'href="(\?from=\w+)" rel="next"', text)
        path = f"/runs{next_link[1]}" if next_link else ""
    assert len(run_ids) == len(set(run_ids)) == 63
    assert {run.id for run in runs} < set(run_ids)
    assert [row["run"] for row in rows(auditor, "/runs.csv")] == run_ids


def test_simulator_lists_are_paged_in_the_order_of_the_csv(copy, tmp_path):
    simulators = [records.digest(f"simulator {number}") for number in range(60)]
    for simulator in simulators:
        copy.library.ledger.open_run(make.console.opening("acme"), simulator, tenant="acme")
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    first = auditor.get("/simulators").text
    next_link = re.search(r'href="(\?from=\w+)" rel="next"', first)
    pages = first + auditor.get(f"/simulators{next_link[1]}").text
    digests = re.findall(
        r'<th scope="row"><a href="/simulators/([\w:]+)"', re.sub(r">\s+<", "><", pages)
    )
    assert sorted(digests) == sorted([*simulators, copy.simulator])
    assert [row["simulator"] for row in rows(auditor, "/simulators.csv")] == digests


def test_episodes_are_listed_in_opening_order(auditor, content):
    episodes = rows(auditor, f"/runs/{content.run}/episodes.csv")
    assert [row["episode"] for row in episodes] == [content.episode, content.fork, content.erased]
    assert [row["copied steps"] for row in episodes] == ["0", "1", "0"]
    assert [row["texts"] for row in episodes] == ["stored", "stored", "erased"]


def test_the_graph_picture_and_the_graph_csv_have_the_same_edges(auditor, content):
    path = f"simulator={content.simulator}"
    edges = rows(auditor, f"/graph.csv?{path}")
    text = auditor.get(f"/graph?{path}").text
    kinds = [(row["from kind"], row["to kind"]) for row in edges]
    for edge in [
        ("data", "cpt"),
        ("cpt", "sft"),
        ("sft", "rl"),
        ("rl", "world model"),
        ("world model", "simulator"),
        ("simulator", "training run"),
        ("training run", "agent"),
    ]:
        assert edge in kinds
    assert text.count("<path d=") == len(edges) == 10


@pytest.mark.parametrize(
    "path", ["/graph", "/runs?from=a'b", "/agents?from=x", "/agents/no-version"]
)
def test_an_invalid_query_causes_no_internal_error(auditor, path):
    assert auditor.get(path).status_code in (200, 422)
    assert "internal error" not in auditor.get(path).text


def test_a_missing_page_returns_404_to_readers_and_401_to_anonymous_callers(auditor, app):
    assert auditor.get("/nowhere/at/all").status_code == 404
    assert make.console.client(app).get("/nowhere").status_code == 401


@pytest.mark.parametrize(
    ("query", "page"),
    [
        (lambda ids: str(ids.agent), lambda ids: f"/agents/{ids.agent}"),
        (lambda ids: ids.run, lambda ids: f"/runs/{ids.run}"),
        (lambda ids: f" {ids.episode} ", lambda ids: f"/episodes/{ids.episode}"),
        (lambda ids: ids.simulator, lambda ids: f"/simulators/{ids.simulator}"),
        (
            lambda history: history.simulator[7:14],
            lambda history: f"/simulators/{history.simulator}",
        ),
        (lambda history: "shell-stable", lambda history: f"/simulators/{history.simulator}"),
        (lambda history: "", lambda history: "/"),
    ],
    ids=["agent", "run", "episode", "digest", "start", "alias", "nothing"],
)
def test_a_search_redirects_to_the_matching_page(auditor, content, query, page):
    answer = auditor.get("/search", params={"q": query(content)})
    assert (answer.status_code, answer.headers["location"]) == (303, page(content))


def test_a_search_for_a_part_of_a_name_lists_the_matches(auditor, content):
    text = auditor.get("/search", params={"q": "shell-agent"}).text
    assert f'href="/agents/{content.agent}"' in text
    assert f'href="/agents/{content.rival}"' in text


def test_an_endpoint_simulator_is_shown_as_unverifiable(copy, tmp_path):
    engine = {"kind": "openai", "url": "https://models.example/v1", "model": "somebodys-model"}
    simulator = records.pinned(tmp_path, engine=engine, artifact=None, files={})
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/simulators/{simulator.digest}").text
    assert "somebodys-model" in text
    assert "cannot be verified" in text
    assert simulator.digest in auditor.get("/simulators").text


def test_a_simulators_page_shows_the_prompt_of_each_of_its_domains(copy, tmp_path):
    pins = {
        **records.pinned_domains("shell", system_prompt="You are a <shell>."),
        **records.pinned_domains("text", system_prompt=""),
    }
    simulator = records.pinned(tmp_path, domains=pins)
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/simulators/{simulator.digest}").text
    prompt = '<pre tabindex="0">You are a &lt;shell&gt;.</pre>'
    assert f"<dt>domain shell</dt><dd>shell-v1{prompt}</dd>" in text
    assert "<dt>domain text</dt><dd>text-v1</dd>" in text


def test_a_simulator_of_another_store_is_shown_with_its_runs(copy, tmp_path):
    simulator = records.digest("elsewhere")
    run = copy.library.ledger.open_run(make.console.opening("acme"), simulator, tenant="acme").id
    acme = make.console.client(make.console.app(copy.library, tmp_path), "acme-agent")
    text = acme.get(f"/simulators/{simulator}").text
    assert "Its manifest is not in this store" in text
    assert f'href="/runs/{run}"' in text
    assert acme.get(f"/graph?simulator={simulator}").status_code == 200


def test_a_simulators_page_links_agents_beyond_the_newest_agents_limit(copy, tmp_path, monkeypatch):
    monkeypatch.setattr("agentworld_console.scoped_view.MOST_AGENTS", 1)
    auditor = make.console.client(make.console.app(copy.library, tmp_path), "office-auditor")
    text = auditor.get(f"/simulators/{copy.simulator}").text
    assert f'href="/agents/{copy.agent}"' in text
    assert f'href="/agents/{copy.rival}"' in text
