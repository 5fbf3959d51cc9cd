"""A data set's contents in the console: only for auditors, and escaped."""

import pytest

import make.console
import make.datasets


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A console and a data set of its store."""
    folder = tmp_path_factory.mktemp("contents")
    history = make.console.library(folder)
    dataset = make.datasets.stored(folder)
    return make.console.app(history.library, folder), dataset


def address(dataset) -> str:
    return f"/datasets/{dataset.digest}/contents"


def test_a_data_set_page_links_its_contents_for_an_auditor(world):
    app, dataset = world
    auditor = make.console.client(app, "office-auditor")
    page = f"/datasets/{dataset.digest}"
    assert f'href="{address(dataset)}"' in auditor.get(page).text
    text = auditor.get(address(dataset)).text
    for fragment in ("Example turns", "line 62", "Licences", '<span class="mask masked">'):
        assert fragment in text
    assert f'href="{page}"' in text


def test_tenants_and_anonymous_callers_see_no_data_set_contents(world):
    app, dataset = world
    acme = make.console.client(app, "acme-agent")
    answer = acme.get(address(dataset))
    assert answer.status_code == 404
    assert "line 62" not in answer.text
    assert "contents" not in acme.get(f"/datasets/{dataset.digest}").text
    assert make.console.client(app).get(address(dataset)).status_code == 401


def test_only_an_auditor_sees_the_source_held_out_rows_and_filters_of_a_data_set(world):
    app, stored = world
    auditor, acme = (make.console.client(app, key) for key in ("office-auditor", "acme-agent"))
    page, held_out = f"/datasets/{stored.digest}", stored.dataset.pools["held_out"]
    text = " ".join(auditor.get(page).text.split())
    assert "<dt>Source</dt><dd>imported from messages: " in text
    assert f"<dt>Held out</dt><dd>{held_out.num_samples} rows, {held_out.num_turns} turns" in text
    for name, num in stored.dataset.filtered.items():
        assert f'{name}</th><td class="number">{num}</td>' in text
    assert f'href="{address(stored)}#examples"' in text
    assert 'id="examples"' in auditor.get(address(stored)).text
    row = f"imported from messages,text,{stored.dataset.num_trajectories},"
    assert row in auditor.get("/datasets.csv").text
    assert "imported from" not in acme.get(page).text + acme.get("/datasets.csv").text


def test_a_data_set_prepared_outside_the_store_has_no_contents_page(world, content):
    app, _ = world
    auditor = make.console.client(app, "office-auditor")
    data = content.pages["dataset"]
    assert auditor.get(f"{data}/contents").status_code == 404
    assert f"{data}/contents" not in auditor.get(data).text


def test_text_of_recordings_is_escaped_and_visible(world):
    app, dataset = world
    text = make.console.client(app, "office-auditor").get(address(dataset)).text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>" not in text
    assert "{{ 7 * 7 }}" in text
    assert all(c.isprintable() or c in "\n\t" for c in text)


@pytest.mark.compute
def test_a_changed_data_set_manifest_returns_an_error_page(tmp_path):
    history = make.console.library(tmp_path)
    dataset = make.datasets.stored(tmp_path)
    (dataset.folder / "dataset.json").write_text("{}")
    auditor = make.console.client(make.console.app(history.library, tmp_path), "office-auditor")
    answer = auditor.get(address(dataset))
    assert answer.status_code == 500
    assert "garbled" in answer.text


def test_the_style_sheet_needs_no_credential(world):
    answer = make.console.client(world[0]).get("/static/dataset.css")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")
