from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.parts import Part, split

FILES = ("test_a.py", "access/test_b.py", "access/test_c.py", "serving/test_d.py")
SLOW_FILE = "import pytest\n\npytestmark = pytest.mark.compute\n"


@pytest.fixture
def tests(tmp_path):
    """A folder with a fast file in each place, a slow one, and a file that is not a test."""
    for name in (*FILES, "serving/conftest.py", "serving/test_slow.py"):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SLOW_FILE if path.stem == "test_slow" else "x" * 100)
    return tmp_path / "tests"


def parts(tests, num_parts, *arguments):
    config = SimpleNamespace(
        args=[str(argument) for argument in arguments or [tests]],
        invocation_params=SimpleNamespace(dir=tests.parent),
        getoption=lambda _name: "not compute",
    )
    return [Part(config, number, num_parts) for number in range(num_parts)]


def is_collected(part, path):
    return part.pytest_ignore_collect(path) is None


@pytest.mark.parametrize("num_parts", [1, 2, 3, 4, 7])
def test_each_file_is_in_exactly_one_part(tests, num_parts):
    all_parts = parts(tests, num_parts)
    for name in FILES:
        assert [is_collected(part, tests / name) for part in all_parts].count(True) == 1


def test_a_part_enters_only_the_folders_of_its_own_files(tests):
    first, second = parts(tests, 2)
    assert is_collected(first, tests)
    assert is_collected(second, tests)
    assert [is_collected(first, tests / name) for name in ("access", "serving")] == [True, False]
    assert [is_collected(second, tests / name) for name in ("access", "serving")] == [False, True]
    assert is_collected(first, tests / "serving/conftest.py")


def test_uncollected_files_have_no_weight_in_the_split(tests):
    (tests / "serving/test_slow.py").write_text(SLOW_FILE + "x" * 10_000)
    first, _ = parts(tests, 2)
    assert [is_collected(first, tests / name) for name in FILES] == [False, True, True, False]


def test_only_named_files_and_tests_are_collected(tests):
    first, second = parts(tests, 2, f"{tests}/test_a.py::test_it", tests / "serving")
    collections = [
        is_collected(first, tests / name) or is_collected(second, tests / name) for name in FILES
    ]
    assert collections == [True, False, False, True]


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 9_999), min_size=1), st.integers(1, 9))
def test_parts_are_of_about_the_same_size(sizes, num_parts):
    files = {Path(name): size for name, size in sizes.items()}
    all_parts = split(files, num_parts)
    assert sorted(path for part in all_parts for path in part) == sorted(files)
    largest = max(files.values())
    for part in all_parts:
        assert sum(files[path] for path in part) <= sum(files.values()) / num_parts + largest
