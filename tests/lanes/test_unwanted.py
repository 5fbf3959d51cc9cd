from types import SimpleNamespace

import pytest

from lanes.unwanted import pytest_ignore_collect

OF_A_LANE = "import pytest\n\npytestmark = pytest.mark.compute  # trains\n"
OF_A_LANE_IN_ORDER = "import pytest\n\npytestmark = [pytest.mark.compute, pytest.mark.ordered]\n"
ON_LINES = (
    "import pytest\n\npytestmark = [\n    pytest.mark.compute,\n    pytest.mark.ordered,\n]\n"
)
WITHOUT_A_LANE = "import pytest\n\npytestmark = pytest.mark.ordered\n"
OF_ONE_TEST = "import pytest\n\n\n@pytest.mark.compute\ndef test_it():\n    assert True\n"


@pytest.mark.parametrize(
    ("text", "expression", "ignored"),
    [
        (OF_A_LANE, "not compute and not waits", True),
        (OF_A_LANE, "waits", True),
        (OF_A_LANE_IN_ORDER, "not compute and not waits", True),
        (OF_A_LANE_IN_ORDER, "ordered", None),
        (ON_LINES, "not compute", True),
        (ON_LINES, "compute", None),
        (WITHOUT_A_LANE, "compute", None),
        (OF_A_LANE, "compute", None),
        (OF_A_LANE, "", None),
        (OF_A_LANE, "long", None),
        (OF_A_LANE, "compute and not long", None),
        (OF_A_LANE, "waits and not long", True),
        (OF_ONE_TEST, "not compute", None),
    ],
)
def test_a_file_is_ignored_if_all_of_its_tests_would_be_deselected(
    tmp_path, text, expression, ignored
):
    path = tmp_path / "test_it.py"
    path.write_text(text)
    config = SimpleNamespace(getoption=lambda _name: expression)
    assert pytest_ignore_collect(path, config) is ignored
    assert pytest_ignore_collect(path.with_name("conftest.py"), config) is None
