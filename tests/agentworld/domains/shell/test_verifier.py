import pytest

from agentworld.domains.base import verdict_of
from agentworld.domains.shell.domain import DOMAIN
from agentworld.domains.shell.verifier import verify

MISSING = "cat: rimo.txt: No such file or directory\n[1] ~"
EXISTS = "mkdir: cannot create directory 'rimo': File exists\n[1] ~"


@pytest.mark.parametrize(
    ("predicted", "truth", "is_same"),
    [
        ("[0] ~", "[0] ~", True),
        ("[1] ~", "[0] ~", False),
        ("[0] ~/kolu", "[0] ~", False),
        ("kolu  \ntane\n[0] ~", "kolu\ntane\n[0] ~", True),
        ("  kolu\n[0] ~", "kolu\n[0] ~", False),
        ("tane\nkolu\n[0] ~", "kolu\ntane\n[0] ~", False),
        ("kolu\n[0] ~", "kolu\ntane\n[0] ~", False),
        ("kolu", "kolu\n[0] ~", False),
        ("", "[0] ~", False),
        ("bash: rimo.txt: No such file or directory\n[1] ~", MISSING, False),
        ("cat: rimo.txt: Is a directory\n[1] ~", MISSING, False),
        ("cat: tane.txt: No such file or directory\n[1] ~", MISSING, False),
        ("cat: rimo.txt: No such file or directory\n[2] ~", MISSING, False),
        ("mkdir: 'rimo': File exists\n[1] ~", EXISTS, False),
        ("mkdir: cannot create directory rimo: File exists\n[1] ~", EXISTS, True),
        ("mkdir: cannot create directory 'tane': File exists\n[1] ~", EXISTS, False),
        ("b: c\n[0] ~", "a: c\n[0] ~", False),
        ("kolu\n[0] ~", "'kolu'\n[0] ~", False),
        ("Mon Dec  1 09:00:00 CET 2025\n[0] ~", "Fri Nov 27 03:41:22 UTC 2026\n[0] ~", True),
        ("-rw-r--r-- 5 Dec  1 09:00 a\n[0] ~", "-rw-r--r-- 5 Nov 27 03:41 a\n[0] ~", True),
        ("-rw-r--r-- 6 Nov 27 03:41 a\n[0] ~", "-rw-r--r-- 5 Nov 27 03:41 a\n[0] ~", False),
        ("[1] 4711\n[0] ~", "[1] 17\n[0] ~", True),
        ("[2] 17\n[0] ~", "[1] 17\n[0] ~", False),
        ("/tmp/tmp.0123456789\n[0] ~", "/tmp/tmp.abcdefghij\n[0] ~", True),
        ("/tmp/kolu\n[0] ~", "/tmp/tane\n[0] ~", False),
        ("[0] ~/tmp.0123456789", "[0] ~/tmp.abcdefghij", True),
        ("[1] ~/tmp.0123456789", "[0] ~/tmp.abcdefghij", False),
    ],
)
def test_only_differences_without_effect_on_later_commands_are_tolerated(predicted, truth, is_same):
    assert verdict_of(DOMAIN, predicted, truth) is is_same


@pytest.mark.parametrize("truth", ["", "kolu", "[0] ~\nkolu", "[0] kolu"])
def test_there_is_no_verdict_on_a_truth_without_a_prompt_line(truth):
    assert verify("[0] ~", truth) == {}
    assert verdict_of(DOMAIN, "[0] ~", truth) is None


@pytest.mark.parametrize("is_same", [True, False])
def test_failed_commands_are_judged_on_the_errors_axis_and_others_on_consistency(is_same):
    assert verify(MISSING if is_same else EXISTS, MISSING) == {"errors": is_same}
    assert verify("kolu\n[0] ~" if is_same else "[0] ~", "kolu\n[0] ~") == {"consistency": is_same}
