from benchmarks.kfp_log import seconds_of_tasks

LOG = """\
23:59:58.500 - INFO - Running pipeline: \x1b[95m'world-model'\x1b[0m
23:59:58.750 - INFO - Executing task \x1b[96m'open-run'\x1b[0m
    a step may say: Task 'open-run' finished
00:00:01.000 - INFO - Task \x1b[96m'open-run'\x1b[0m finished with status \x1b[92mSUCCESS\x1b[0m
00:00:01.001 - INFO - Task \x1b[96m'open-run'\x1b[0m outputs:
00:00:01.500 - INFO - Executing task 'collect'
00:00:02.000 - INFO - Task 'collect' finished with status SUCCESS
00:00:03.000 - INFO - Executing task 'prepare'
"""


def test_a_tasks_seconds_are_from_its_start_to_its_end_also_over_midnight():
    assert seconds_of_tasks(LOG) == {"open_run": 2.25, "collect": 0.5}
