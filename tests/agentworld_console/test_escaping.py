"""Text of agents, worlds and people is shown on pages, and cannot run there."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

import make.console
from agentworld.records.episode import Source
from agentworld.records.run import RunOpening
from agentworld.reports.visible import preview, visible, visible_lines
from make import records
from make.console import NASTY

WORDS = NASTY.replace("\ud800", "")
ALLOWED_SCRIPTS = {"/static/console.js"}


class Scripts(HTMLParser):
    """Elements of a page that could run, or were injected."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.found += [name for name in attributes if name.startswith("on")]
        if tag == "script" and attributes.get("src") not in ALLOWED_SCRIPTS:
            self.found.append("script")
        if str(attributes.get("href", "")).lower().startswith(("javascript:", "data:")):
            self.found.append(attributes["href"])


def is_harmless(text: str) -> bool:
    scripts = Scripts()
    scripts.feed(text)
    return scripts.found == [] and all(c.isprintable() or c in "\n\t" for c in text)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A client, and a run, an episode and a simulator with hostile texts."""
    folder = tmp_path_factory.mktemp("nasty")
    copy = make.console.library(folder)
    ledger = copy.library.ledger
    domains = records.pinned_domains(system_prompt=NASTY.replace("\ud800", ""))
    simulator = records.pinned(folder, domains=domains)
    opening = RunOpening(
        agent=WORDS, starting_weights=records.digest("s"), opened_by=WORDS, simulator=WORDS
    )
    run = ledger.open_run(opening, simulator.digest, tenant="acme").id
    task = records.task(id=WORDS, instruction=NASTY.replace("\ud800", ""))
    episode = make.console.play(
        ledger, run, simulator.digest, NASTY, task=task, simulation_instruction=WORDS
    )
    make.console.play(ledger, run, simulator.digest, NASTY, fork=Source(episode=episode, step=1))
    make.console.use(
        copy.names,
        copy.library.registry,
        copy.agent,
        "nasty",
        by=WORDS.replace("\x00", ""),
    )
    ledger.aliases.set("nasty", simulator.digest, WORDS, override=WORDS)
    copy.library.ledger.aliases.set("second", simulator.digest, "=1+1", override="@SUM(A1)")
    client = make.console.client(make.console.app(copy.library, folder), "office-auditor")
    return client, run, episode, simulator.digest


def addresses(run, episode, simulator):
    return [
        "/",
        "/runs",
        "/runs.csv",
        f"/runs/{run}",
        f"/runs/{run}/episodes.csv",
        f"/episodes/{episode}",
        f"/episodes/{episode}.csv",
        f"/simulators/{simulator}",
        f"/simulators/{simulator}/runs.csv",
        f"/simulators/{simulator}/aliases.csv",
        f"/graph?simulator={simulator}",
        f"/graph.csv?simulator={simulator}",
        "/in-use",
        "/in-use.csv",
        "/datasets",
        f"/datasets/{records.digest('data')}",
        f"/datasets/{records.digest('data')}/simulators.csv",
        f"/datasets/{records.digest('data')}/runs.csv",
        f"/episodes/{episode}/forks.csv",
        f"/episodes/{episode}/opening.txt",
        f"/episodes/{episode}/1/observation.txt",
    ]


@pytest.mark.parametrize("index", range(21))
def test_no_page_or_csv_contains_active_markup_or_control_characters(nasty, index):
    client, *names = nasty
    answer = client.get(addresses(*names)[index])
    assert answer.status_code == 200
    text = answer.content.decode().replace("\r\n", "\n")
    if answer.headers["content-type"].startswith("text/html"):
        assert is_harmless(text)
    else:
        assert all(c.isprintable() or c in "\n\t" for c in text)


def test_hostile_text_is_escaped_and_readable(nasty):
    client, run, episode, _ = nasty
    text = client.get(f"/episodes/{episode}").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert '<span class="unseen">\\x1b</span>[2J' in text
    assert '<span class="unseen">\\ud800</span>' in text
    assert "{{ 7 * 7 }}" in text
    assert "&lt;script&gt;" in client.get(f"/runs/{run}").text


def test_a_formula_like_name_gets_an_apostrophe_in_csv(nasty):
    client, _, _, simulator = nasty
    text = client.get(f"/simulators/{simulator}/aliases.csv").text
    assert "'=1+1" in text
    assert "'@SUM(A1)" in text


@pytest.mark.parametrize(
    "path",
    [
        "/search",
        "/runs/{}",
        "/episodes/{}",
        "/episodes/{}/opening.txt",
        "/datasets/{}",
        "/agents/{}",
        "/simulators/{}",
        "/graph?agent={}",
    ],
)
@pytest.mark.parametrize(
    "name", ["<script>x</script>", "%1B%5B2J", "%E2%80%AE", "%ED%A0%80", "%00"]
)
def test_a_hostile_path_or_query_is_escaped_in_the_answer(auditor, path, name):
    answer = auditor.get(path.format(name) if "{}" in path else f"{path}?q={name}")
    assert answer.status_code in (303, 404, 422)
    assert is_harmless(answer.text)


def test_the_preview_of_a_long_text_is_cut():
    assert len(preview("a" * 1_000_000)) == 8_000


@given(st.text(alphabet=st.characters(), max_size=40))
def test_a_text_is_escaped_character_by_character(text):
    def escape_character(c):
        if c.isprintable() or c in "\n\t":
            return str(escape(c))
        return f'<span class="unseen">{visible(c)}</span>'

    one_by_one = "".join(map(escape_character, text)).replace('</span><span class="unseen">', "")
    assert preview(text) == one_by_one
    assert visible_lines(text) == "".join(c if c in "\n\t" else visible(c) for c in text)


def test_unprintable_characters_are_written_as_escapes():
    assert visible("a\x00b\u202ec\n") == "a\\x00b\\u202ec\\n"
