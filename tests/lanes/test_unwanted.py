from types import SimpleNamespace

import pytest

from lanes.unwanted import pytest_ignore_collect

SLOW_FILE = "import pytest\n\npytestmark = pytest.mark.compute  # trains\n"
ORDERED_SLOW_FILE = "import pytest\n\npytestmark = [pytest.mark.compute, pytest.mark.ordered]\n"
MULTILINE_MARKERS = (
    "import pytest\n\npytestmark = [\n    pytest.mark.compute,\n    pytest.mark.ordered,\n]\n"
)
FAST_FILE = "import pytest\n\npytestmark = pytest.mark.ordered\n"
SLOW_TEST = "import pytest\n\n\n@pytest.mark.compute\ndef test_it():\n    assert True\n"


@pytest.mark.parametrize(
    ("text", "expression", "is_ignored"),
    [
        (SLOW_FILE, "not compute and not waits", True),
        (SLOW_FILE, "waits", True),
        (ORDERED_SLOW_FILE, "not compute and not waits", True),
        (ORDERED_SLOW_FILE, "ordered", None),
        (MULTILINE_MARKERS, "not compute", True),
        (MULTILINE_MARKERS, "compute", None),
        (FAST_FILE, "compute", None),
        (SLOW_FILE, "compute", None),
        (SLOW_FILE, "", None),
        (SLOW_FILE, "long", None),
        (SLOW_FILE, "compute and not long", None),
        (SLOW_FILE, "waits and not long", True),
        (SLOW_TEST, "not compute", None),
    ],
)
def test_a_file_is_ignored_if_all_of_its_tests_would_be_deselected(
    tmp_path, text, expression, is_ignored
):
    path = tmp_path / "test_it.py"
    path.write_text(text)
    config = SimpleNamespace(getoption=lambda _name: expression)
    assert pytest_ignore_collect(path, config) is is_ignored
    assert pytest_ignore_collect(path.with_name("conftest.py"), config) is None
