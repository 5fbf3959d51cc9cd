"""The page about domains shows what its commands print, with a real shell."""

import pytest

from make import pages

pytestmark = pytest.mark.waits

PAGE = pages.ROOT / "docs/guides/domains.md"


def test_the_page_shows_what_its_commands_print(tmp_path):
    shown = PAGE.read_text()
    with pages.terminal(tmp_path) as terminal:
        played = terminal.play(shown, "agentworld domain")
    assert pages.forms(played) == pages.forms(shown)
