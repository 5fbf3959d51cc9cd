"""The pages in Chromium: accessibility without sight, without a mouse, and with many nodes."""

import shutil
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

import make.access
import make.console
import make.datasets
from agentworld.access.checked import LocalAccess
from agentworld.engine.process import free_port
from agentworld.lineage.base import Agent
from agentworld.records.run import RunClosing
from agentworld.reports.dataset import render_dataset, view_dataset
from agentworld_console.access import Callers
from agentworld_console.app import create_app
from agentworld_console.graph import MOST_RUNS
from make import records
from make.console import ConsoleStore
from waiting import wait_for

pytestmark = pytest.mark.waits

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".graph text")].map((e) => e.getBoundingClientRect());
  let found = 0;
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const a = boxes[i], b = boxes[j];
    found += a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  }
  return [boxes.length, found];
}"""
STICKS_OUT = """() => [...document.querySelectorAll(".graph .node")].filter((node) => {
  const box = node.querySelector("rect").getBoundingClientRect();
  return [...node.querySelectorAll("text")].some((e) => {
    const text = e.getBoundingClientRect();
    return text.left < box.left || text.right > box.right || text.bottom > box.bottom;
  });
}).length"""


def add_agents(history: ConsoleStore, num: int) -> None:
    """Adds `num` runs with one agent each."""
    ledger, registry = history.library.ledger, history.library.registry
    for number in range(num):
        opening = make.console.opening("acme")
        run = ledger.open_run(opening, history.simulator, tenant="acme").id
        weights = records.digest(f"weights {number}")
        ledger.close_run(run, RunClosing(final_weights=weights))
        checkpoint = records.checkpoint("agent", artifact=weights, simulator=history.simulator)
        name = "WWWWWWWW-agent-with-a-long-name"
        registry.register_agent(name, Agent(checkpoint=checkpoint, run=run), history.library.store)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> ConsoleStore:
    history = make.console.library(tmp_path_factory.mktemp("world"))
    add_agents(history, MOST_RUNS)
    # The agents in use need a new validation, and the registry lacks one of their aliases.
    history.move_on()
    history.library.registry.remove_alias(history.agent.name, "shop")
    return history


@pytest.fixture(scope="module")
def url(world) -> Iterator[str]:
    """A console without authentication."""
    callers = Callers(LocalAccess(make.access.TOKENS), loopback_only=True)
    app, port = create_app(world.library, callers), free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


def accessibility_problems(browser: Browser, address: str, scheme: str) -> list[str]:
    """Axe's serious findings on a page, and the browser's messages."""
    context = browser.new_context(color_scheme=scheme)
    page, messages = context.new_page(), []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(address)
    violations = Axe().run(page).response["violations"]
    context.close()
    serious = [
        violation["id"]
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
    return [*serious, *(text for text in messages if "404" not in text)]


@pytest.fixture(scope="module")
def dataset(world) -> str:
    """The page of a data set with hostile recordings."""
    return f"/datasets/{make.datasets.stored(world.library.store).digest}"


def width_beyond_a_narrow_screen(browser: Browser, address: str) -> int:
    """Pixels by which the page or a caption is wider than a screen of 390 pixels."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(address)
    root = "document.documentElement"
    width: int = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    ends = "e => e.map((caption) => caption.getBoundingClientRect().right)"
    width = max(width, *(end - 390 for end in page.eval_on_selector_all("caption", ends)), 0)
    context.close()
    return width


@pytest.fixture
def page(browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", make.console.ConsoleStore(*"x" * 11).pages)
def test_no_page_has_a_serious_accessibility_violation(browser, url, world, scheme, name):
    assert accessibility_problems(browser, url + world.pages[name], scheme) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_long_texts_has_no_serious_accessibility_violation(browser, url, world, scheme):
    ledger, texts = world.library.ledger, ["x" * 9_000, "long words " * 2_000] * 30
    episode = make.console.play(ledger, world.open_run, world.simulator, *texts)
    assert accessibility_problems(browser, f"{url}/episodes/{episode}", scheme) == []


def test_a_long_text_is_reachable_in_full_by_keyboard(page, url, world):
    episode = make.console.play(world.library.ledger, world.open_run, world.simulator, "x" * 9_000)
    page.goto(f"{url}/episodes/{episode}")
    page.get_by_label("Observation of step 1", exact=True).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/episodes/{episode}/1/observation.txt")
    assert page.inner_text("body") == "x" * 9_000


@pytest.mark.parametrize("name", make.console.ConsoleStore(*"x" * 11).pages)
def test_no_page_is_wider_than_a_narrow_screen(browser, url, world, name):
    assert width_beyond_a_narrow_screen(browser, url + world.pages[name]) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["", "/contents"])
def test_data_set_pages_have_no_serious_accessibility_violation(
    browser, url, dataset, scheme, page
):
    assert accessibility_problems(browser, url + dataset + page, scheme) == []


def test_data_set_pages_and_reports_fit_a_narrow_screen(browser, url, dataset, tmp_path):
    for page in (dataset, f"{dataset}/contents"):
        assert width_beyond_a_narrow_screen(browser, url + page) == 0
    stored_dataset = make.datasets.stored(tmp_path)
    (tmp_path / "page.html").write_text(render_dataset(view_dataset(stored_dataset)))
    assert width_beyond_a_narrow_screen(browser, (tmp_path / "page.html").as_uri()) == 0


def test_a_slash_focuses_the_search_and_enter_opens_the_result(page, url, world):
    page.goto(url)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type(f"/{world.agent}")
    assert page.input_value("#search") == f"/{world.agent}"
    page.keyboard.press("Control+A")
    page.keyboard.type(str(world.agent))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/agents/*")


def test_the_first_tab_skips_to_the_content(page, url):
    page.goto(url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert urlsplit(page.url).fragment == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_every_linked_graph_node_is_reachable_by_keyboard_with_visible_focus(page, url, world):
    page.goto(url + world.pages["agent-graph"])
    links = page.locator(".graph a").count()
    page.locator(".graph").focus()
    focused_links = []
    for _ in range(links):
        page.keyboard.press("Tab")
        focused_links.append(page.evaluate("document.activeElement.getAttribute('href')"))
        stroke_width = "getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth"
        assert page.evaluate(stroke_width) == "3px"
    assert focused_links[-1] == f"/agents/{world.agent}"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/agents/*")


def test_search_and_links_work_without_javascript(browser, url, world):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    page.fill("#search", world.run)
    page.press("#search", "Enter")
    page.wait_for_url(f"{url}/runs/{world.run}")
    page.click(f"a[href='/episodes/{world.episode}']")
    assert world.episode in page.inner_text("h1")
    context.close()


def test_labels_of_two_hundred_graph_nodes_neither_overlap_nor_overflow(page, url, world):
    page.goto(url + world.pages["graph"], wait_until="load")
    num, overlaps = page.evaluate(OVERLAPS)
    assert num / 2 >= 195
    assert (overlaps, page.evaluate(STICKS_OUT)) == (0, 0)
