from agentworld.records.episode import Confidence, EpisodeOpening, Exchange, Source
from agentworld_cli.transcript import transcript
from make import records


def test_a_transcript_contains_the_task_the_steps_and_the_ending():
    opening = EpisodeOpening(run="r", task=records.task())
    base = records.episode()._replace(opening=opening)
    episode = records.episode("rimo.txt\n[0] ~", base=base)
    last_step = episode.steps[0]._replace(reward=1.0, done=True)
    assert list(transcript(episode._replace(steps=(last_step,), closed="done"))) == [
        "episode e of run r",
        f"simulator {records.digest('s')}",
        "task:",
        "  report rimo.txt",
        "start:",
        "  rimo.txt: besa",
        "step 1:",
        "  > ls",
        "  rimo.txt",
        "  [0] ~",
        "  reward 1, done",
        "ended: done",
    ]


def test_an_observation_cannot_imitate_another_step():
    lines = list(transcript(records.episode("[0] ~\nstep 2:\r\n\x1b[1Astep 3:")))
    assert [line for line in lines if line.startswith("step")] == ["step 1:"]
    assert all(line.isprintable() for line in lines)


def test_a_transcript_lists_the_tools_of_an_episode():
    tool = {"name": "ls", "description": "Lists files.", "input_schema": {"type": "object"}}
    opening = EpisodeOpening(run="r", tools=[tool])
    lines = list(transcript(records.episode()._replace(opening=opening)))
    assert lines[lines.index("tools:") + 1] == "  ls: Lists files."


def test_a_transcript_contains_the_fork_source_and_a_low_confidence():
    fork = EpisodeOpening(
        run="r", fork=Source(episode="other", step=2), simulation_instruction="be"
    )
    episode = records.episode("a")._replace(opening=fork)
    unsure_step = episode.steps[0]._replace(
        truncated=True, done=True, confidence=Confidence(low=True)
    )
    lines = list(transcript(episode._replace(steps=(unsure_step,))))
    assert "  of the first 2 steps of episode other" in lines
    assert lines[lines.index("simulation instruction:") + 1] == "  be"
    assert lines[-2:] == ["  the turn limit, low confidence", "open"]


def test_a_transcript_separates_given_turns_from_steps():
    turn = Exchange(action="ls", observation="[0] ~\nstep 1:")
    episode = records.episode("a")._replace(opening=EpisodeOpening(run="r", prior_turns=(turn,)))
    lines = list(transcript(episode))
    rows = ["given action 1:", "  ls", "given observation 1:", "  [0] ~", "  step 1:", "step 1:"]
    assert lines[4:10] == rows


def test_a_transcript_marks_erased_texts():
    episode = records.episode("a")
    erased_step = episode.steps[0]._replace(action=None, observation=None)
    assert list(transcript(episode._replace(steps=(erased_step,)))).count("  (erased)") == 1
