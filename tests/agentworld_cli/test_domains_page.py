"""The page about domains shows what its commands print, with a real shell."""

import pytest

from make import pages

pytestmark = pytest.mark.waits

PAGE = pages.ROOT / "docs/guides/domains.md"


def test_the_page_shows_what_its_commands_print(tmp_path):
    text = PAGE.read_text()
    with pages.terminal(tmp_path) as terminal:
        output = terminal.play(text, "agentworld domain")
    assert pages.forms(output) == pages.forms(text)
