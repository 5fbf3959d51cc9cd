from agentworld.domains.base import domain_of
from agentworld.scoring.success import outcome
from make import records

SHELL, PLAIN = domain_of("shell"), domain_of("text")


def test_a_closed_task_is_done_and_rewarded():
    task = records.task()
    assert outcome(SHELL, task, 3, 1, "echo besa", "besa\n[0] ~") == (1.0, True, False)
    assert outcome(SHELL, task, 3, 1, "echo no", "no\n[0] ~") == (0.0, True, False)


def test_success_is_decided_by_the_rule_of_the_domain():
    task = records.task(domain="text")
    assert outcome(PLAIN, task, 3, 1, "echo besa", "besa") == (1.0, True, False)
    assert outcome(PLAIN, task, 3, 1, "echo besa", "besa\n[0] ~") == (0.0, True, False)
    assert outcome(SHELL, task, 3, 1, "echo besa", "besa") == (0.0, True, False)


def test_a_task_closed_at_its_last_turn_is_not_truncated():
    result = outcome(SHELL, records.task(), 3, 3, "echo besa", "besa\n[0] ~")
    assert result == (1.0, True, False)


def test_a_task_open_at_its_last_turn_has_failed():
    assert outcome(SHELL, records.task(), 3, 2, "ls", "[0] ~") == (None, False, False)
    assert outcome(SHELL, records.task(), 3, 3, "ls", "[0] ~") == (0.0, True, True)


def test_without_a_task_there_is_no_reward():
    assert outcome(SHELL, None, 2, 1, "echo besa", "besa\n[0] ~") == (None, False, False)
    assert outcome(SHELL, None, 2, 2, "echo besa", "besa\n[0] ~") == (None, True, True)
