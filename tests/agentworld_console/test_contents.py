"""A data set's contents in the console: only for auditors, and escaped."""

import pytest

import make.console
import make.datasets


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A console, a data set of its store, and its address."""
    folder = tmp_path_factory.mktemp("contents")
    told = make.console.library(folder)
    dataset = make.datasets.stored(folder)
    return make.console.app(told.library, folder), dataset


def address(dataset) -> str:
    return f"/datasets/{dataset.digest}/contents"


def test_an_auditor_is_led_to_what_a_data_set_holds(world):
    app, dataset = world
    auditor = make.console.client(app, "office-auditor")
    page = f"/datasets/{dataset.digest}"
    assert f'href="{address(dataset)}"' in auditor.get(page).text
    text = auditor.get(address(dataset)).text
    for words in ("Example turns", "line 62", "Licences", '<span class="mask masked">'):
        assert words in text
    assert f'href="{page}"' in text


def test_a_tenant_and_nobody_see_nothing_of_it(world):
    app, dataset = world
    acme = make.console.client(app, "acme-agent")
    answer = acme.get(address(dataset))
    assert answer.status_code == 404
    assert "line 62" not in answer.text
    assert "contents" not in acme.get(f"/datasets/{dataset.digest}").text
    assert make.console.client(app).get(address(dataset)).status_code == 401


def test_an_auditor_alone_sees_source_rows_held_out_and_filters_of_a_data_set(world):
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


def test_data_that_this_store_did_not_prepare_has_no_such_page(world, told):
    app, _ = world
    auditor = make.console.client(app, "office-auditor")
    data = told.pages["dataset"]
    assert auditor.get(f"{data}/contents").status_code == 404
    assert f"{data}/contents" not in auditor.get(data).text


def test_what_recordings_say_is_no_element_and_can_be_seen(world):
    app, dataset = world
    text = make.console.client(app, "office-auditor").get(address(dataset)).text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>" not in text
    assert "{{ 7 * 7 }}" in text
    assert all(c.isprintable() or c in "\n\t" for c in text)


@pytest.mark.compute
def test_a_manifest_that_was_changed_is_a_page_of_an_error(tmp_path):
    told = make.console.library(tmp_path)
    dataset = make.datasets.stored(tmp_path)
    (dataset.folder / "dataset.json").write_text("{}")
    auditor = make.console.client(make.console.app(told.library, tmp_path), "office-auditor")
    answer = auditor.get(address(dataset))
    assert answer.status_code == 500
    assert "garbled" in answer.text


def test_the_style_of_the_page_is_open_to_all(world):
    answer = make.console.client(world[0]).get("/static/dataset.css")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")
