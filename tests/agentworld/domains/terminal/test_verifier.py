"""The rules tolerate only differences from run to run."""

import pytest

from agentworld.domains.base import domain_of, is_match, verdict_of

TERMINAL = domain_of("terminal")
PROMPT = "agent@world:~$"
TRUTHS = [
    f"{PROMPT} echo kolu tane > a.txt\n{PROMPT}",
    f"{PROMPT} cat a.txt\nkolu tane\nrimo\n{PROMPT}",
    f"{PROMPT} cat b.txt\ncat: b.txt: No such file or directory\n{PROMPT}",
    f"{PROMPT} python3 -q\n>>> 6 * 7\n42\n>>>",
    "kolu tane\nrimo\n~\n~\n(END)",
    f"{PROMPT} sleep 9 &\n[1] 17\n{PROMPT} date\nThu 2026-11-26 10:00:01\n{PROMPT}",
]
VOLATILE_PAIRS = [
    ("2026-11-26 10:00:01", "2027-01-02 03:04:05"),
    ("Nov 26 10:00", "Dec  1 11:59"),
    ("/tmp/tmp.Ab12xQq9Zz/a", "/tmp/tmp.Qq9Ab12xZz/a"),
    ("rm tmp.Ab12xQq9Zz", "rm tmp.Qq9Ab12xZz"),
    ("'/tmp/tmpab_12xyz'", "'/tmp/tmpqq9ab12x'"),
    ("[1]+    17 Running          sleep 9 &", "[1]+  4711 Running          sleep 9 &"),
    (" 10:00:01 up 3 days,  load average: 0.1", " 11:00:01 up 1 min,  load average: 9"),
    ("top - 10:00:01 up 3 days,  load average: 0.1", "top - 11:22:33 up 4 min,  load average: 7"),
    ("Tasks:   3 total,   1 running", "Tasks:  19 total,   2 running"),
    ("%Cpu(s):  0.3 us,  0.0 sy", "%Cpu(s): 99.0 us,  0.1 sy"),
    ("MiB Mem :   7951.2 total,  1.0 free", "MiB Mem :   100.2 total,  2.0 free"),
    (
        "     17 agent     20   0    7196   3712   3200 S   0.0   0.0   0:00.01 bash",
        "   4711 agent     25   5    9999   9.7g   9200 R  10.0   0.1   0:07.31 bash",
    ),
    ("     17 pts/0    00:00:00 bash", "   4711 pts/3    00:00:09 bash"),
    ("1000    3   1  0 03:54 ?   00:00:00 bash -i", "1000   42   7  2 Nov26 ?   00:01:00 bash -i"),
    (
        "1000  3  0.0  0.1   4624  3696 ?   Ss   03:54   0:00 bash",
        "1000 42  9.9  1.1  4699 36 pts/1 Ss   Nov26   0:09 bash",
    ),
]  # fmt: skip


@pytest.mark.parametrize("truth", TRUTHS)
def test_trailing_white_space_does_not_affect_the_verdict_or_the_match(truth):
    for predicted in (truth, truth.replace("\n", "  \n"), f"{truth}\n\n"):
        assert verdict_of(TERMINAL, predicted, truth) is True
        assert is_match(TERMINAL, predicted, truth)


@pytest.mark.parametrize(("first", "second"), VOLATILE_PAIRS)
def test_volatile_values_are_tolerated_but_are_no_exact_match(first, second):
    assert verdict_of(TERMINAL, f"{PROMPT} x\n{first}\n{PROMPT}", f"{PROMPT} x\n{second}\n{PROMPT}")
    assert not is_match(TERMINAL, first, second)


STABLE_PAIRS = [
    ("/tmp/kolu.txt", "/tmp/tane.txt"),
    ("/tmp/tmp.kolu", "/tmp/tmp.tane"),
    ("tmpab_12xyz", "tmpqq9ab12x"),
    ("[1] 42", "[1] 43"),
    ("[1] 42", "[2] 42"),
    ("[1]+ 42 apples", "[1]+ 43 apples"),
    ("[1]+  17 Running   sleep 9 &", "[1]+  17 Stopped   sleep 9 &"),
    ("[1]+  17 Running   sleep 9 &", "[1]+  17 Running   sleep 8 &"),
    ("top - the game", "top - the film"),
    ("Tasks: 3 open", "Tasks: 4 open"),
    ("MiB Mem : much", "MiB Mem : little"),
    ("12 kolu 10:00:00 a", "13 kolu 10:00:00 a"),
    ("     17 pts/0    00:00:00 bash", "     17 pts/0    00:00:00 vi"),
    ("1000    3   1  0 03:54 ?   00:00:00 bash -i", "1000    3   1  0 03:54 ?   00:00:00 bash"),
    (
        "1000  3  0.0  0.1   4624  3696 ?   Ss   03:54   0:00 bash",
        "1000  3  0.0  0.1   4624  3696 ?   Ss   03:54   0:00 vi",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), STABLE_PAIRS)
def test_values_that_only_resemble_volatile_values_are_not_tolerated(first, second):
    predicted, truth = (f"{PROMPT} x\n{text}\n{PROMPT}" for text in (first, second))
    assert verdict_of(TERMINAL, predicted, truth) is False


@pytest.mark.parametrize(
    ("command", "is_tolerated"),
    [
        ("sleep 9 &", True),
        ("sleep 9 & echo hi", True),
        ("Rscript -e 42", False),
        ("make && ./a", False),
        ("make >& log", False),
        ("make &> log", False),
        ("make 2>&1", False),
    ],
)
def test_a_job_id_is_tolerated_only_after_a_background_command(command, is_tolerated):
    predicted, truth = (f"{PROMPT} {command}\n[1] {pid}\n{PROMPT}" for pid in (17, 4711))
    assert verdict_of(TERMINAL, predicted, truth) is is_tolerated
    screens = [f"{PROMPT} {command}\n{PROMPT} cat a\n[1] {pid}\n{PROMPT}" for pid in (17, 4711)]
    assert verdict_of(TERMINAL, *screens) is False


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize(
    "change",
    [
        lambda screen: screen.replace("o", "a", 1),
        lambda screen: screen.rpartition("\n")[0],
        lambda screen: screen.partition("\n")[2],
        lambda screen: "\n".join(reversed(screen.split("\n"))),
        lambda screen: f"{screen}\nbash: x: command not found",
        lambda screen: f"{PROMPT} ls\n{screen}",
        lambda _: PROMPT,
        lambda _: "",
    ],
)
def test_every_wrong_change_of_a_screen_fails(truth, change):
    screen = change(truth)
    assert screen != truth
    assert verdict_of(TERMINAL, screen, truth) is False


def test_only_an_error_of_the_last_command_is_judged_on_the_errors_axis():
    failed_screen = f"{PROMPT} nosuch\nbash: nosuch: command not found\n{PROMPT}"
    assert TERMINAL.verify(failed_screen, failed_screen) == {"errors": True}
    later_screen = f"{failed_screen} echo hi\nhi\n{PROMPT}"
    assert TERMINAL.verify(later_screen, later_screen) == {"consistency": True}
    assert TERMINAL.is_failure(failed_screen)
    assert not TERMINAL.is_failure(later_screen)


def test_a_blank_screen_has_no_verdict():
    assert TERMINAL.verify("x", " \n") == {}
