"""The rules forgive what differs from run to run, and nothing else."""

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
VOLATILE = [
    ("[1] 17", "[1] 4711"),
    ("2026-11-26 10:00:01", "2027-01-02 03:04:05"),
    ("Nov 26 10:00", "Dec  1 11:59"),
    ("/tmp/tmp.Ab12x", "/tmp/tmp.Qq9"),
    (" 10:00:01 up 3 days,  load average: 0.1", " 11:00:01 up 1 min,  load average: 9"),
    ("top - 10:00:01 up 3 days, load: 0.10", "top - 11:22:33 up 4 days, load: 7.00"),
    ("Tasks: 3 total,   1 running", "Tasks: 9 total,   2 running"),
    ("%Cpu(s):  0.3 us", "%Cpu(s): 99.0 us"),
    ("MiB Mem :   7951.2 total", "MiB Mem :   100.2 total"),
    (
        "     17 agent     20   0    7196   3712   3200 S   0.0   0.0   0:00.01 bash",
        "   4711 agent     20   0    9999   9712   9200 R  10.0   0.1   0:07.31 bash",
    ),
    ("     17 pts/0    00:00:00 bash", "   4711 pts/0    00:00:09 bash"),
]  # fmt: skip


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_truth_and_other_white_space_at_the_ends_pass(truth):
    for predicted in (truth, truth.replace("\n", "  \n"), f"{truth}\n\n"):
        assert verdict_of(TERMINAL, predicted, truth) is True
        assert is_match(TERMINAL, predicted, truth)


@pytest.mark.parametrize(("one", "other"), VOLATILE)
def test_what_differs_from_run_to_run_is_forgiven_and_is_no_exact_match(one, other):
    assert verdict_of(TERMINAL, f"{PROMPT} x\n{one}\n{PROMPT}", f"{PROMPT} x\n{other}\n{PROMPT}")
    assert not is_match(TERMINAL, one, other)


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
    changed = change(truth)
    assert changed != truth
    assert verdict_of(TERMINAL, changed, truth) is False


def test_an_error_of_the_last_command_is_another_axis_and_an_earlier_one_is_not():
    failed = f"{PROMPT} nosuch\nbash: nosuch: command not found\n{PROMPT}"
    assert TERMINAL.verify(failed, failed) == {"errors": True}
    after = f"{failed} echo hi\nhi\n{PROMPT}"
    assert TERMINAL.verify(after, after) == {"consistency": True}
    assert TERMINAL.is_failure(failed)
    assert not TERMINAL.is_failure(after)


def test_a_blank_screen_has_no_verdict():
    assert TERMINAL.verify("x", " \n") == {}
