"""An episode's page: its turns, its long texts, its forks and its replays."""

import csv
import io
import re

import pytest

import make.console
from agentworld.ledger.tables import EPISODES
from agentworld.records.episode import Exchange, Source
from make import records

pytestmark = pytest.mark.compute

LONG = "<b>a long text</b>\n" * 5_000


def rows(client, path):
    return list(csv.DictReader(io.StringIO(client.get(path).text)))


def client(history, folder, name="office-auditor"):
    return make.console.client(make.console.app(history.library, folder), name)


def play(history, *texts, run="", **opening):
    return make.console.play(
        history.library.ledger, run or history.open_run, history.simulator, *texts, **opening
    )


def test_an_episode_page_links_its_forks_and_replays(copy, tmp_path):
    replay = play(copy, replay=Source(episode=copy.episode, step=2))
    auditor = client(copy, tmp_path)
    text = auditor.get(f"/episodes/{copy.episode}").text
    assert f'href="/episodes/{copy.fork}"' in text
    assert f'href="/episodes/{replay}"' in text
    forks = rows(auditor, f"/episodes/{copy.episode}/forks.csv")
    assert [(row["episode"], row["kind"], row["first steps"]) for row in forks] == [
        (copy.fork, "fork", "1"),
        (replay, "replay", "2"),
    ]
    assert "You may see no fork or replay of it" in auditor.get(f"/episodes/{copy.fork}").text


def test_a_tenant_sees_only_its_own_forks(copy, tmp_path):
    rival_run = copy.library.ledger.open_run(
        make.console.opening("rival"), copy.simulator, tenant="rival"
    ).id
    rival_fork = play(copy, "ls", run=rival_run, fork=Source(episode=copy.episode, step=1))
    for path in (f"/episodes/{copy.episode}", f"/episodes/{copy.episode}/forks.csv"):
        text = client(copy, tmp_path, "acme-agent").get(path).text
        assert copy.fork in text
        assert rival_fork not in text
        assert rival_fork in client(copy, tmp_path).get(path).text
    rival = client(copy, tmp_path, "rival-agent")
    assert rival.get(f"/episodes/{copy.episode}/forks.csv").status_code == 404


def test_a_fork_recorded_only_in_the_index_is_not_shown_as_a_fork(copy, tmp_path):
    with copy.library.ledger._database.engine.begin() as database:
        condition = EPISODES.c.id == copy.erased
        database.execute(EPISODES.update().where(condition).values(source=copy.episode))
        condition = EPISODES.c.id == copy.rival_episode
        database.execute(EPISODES.update().where(condition).values(source=copy.episode))
    (fork, erased) = rows(client(copy, tmp_path), f"/episodes/{copy.episode}/forks.csv")
    assert (fork["episode"], fork["kind"]) == (copy.fork, "fork")
    assert (erased["episode"], erased["kind"]) == (copy.erased, "cannot be read")


def test_a_long_text_is_cut_and_links_the_full_text(copy, tmp_path):
    episode, auditor = play(copy, *[LONG] * 3), client(copy, tmp_path)
    answer = auditor.get(f"/episodes/{episode}")
    assert len(answer.content) < 150_000
    assert f"{len(LONG) - 8_000:,} more characters" in answer.text
    full_answer = auditor.get(f"/episodes/{episode}/3/observation.txt")
    assert f'href="/episodes/{episode}/3/observation.txt"' in answer.text
    assert full_answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert full_answer.text == LONG
    assert auditor.get(f"/episodes/{episode}/1/action.txt").text == f"echo {LONG}"
    assert [row["observation"] for row in rows(auditor, f"/episodes/{episode}.csv")] == [LONG] * 3


def test_a_long_opening_is_cut_and_readable_in_full_as_text(copy, tmp_path):
    prior_turns = tuple(Exchange(action=f"do {n}", observation=f"done {n}") for n in range(30))
    episode = play(copy, "ls", initial_state=LONG, prior_turns=prior_turns)
    auditor = client(copy, tmp_path)
    text, full_text = (
        auditor.get(f"/episodes/{episode}{path}").text for path in ("", "/opening.txt")
    )
    assert "10 more turns" in text
    assert "done 19" in text
    assert "done 20" not in text
    assert "done 29" in full_text
    assert full_text.count("a long text") == 5_000


def test_an_empty_opening_is_shown_as_empty(copy, tmp_path):
    episode = play(copy, "ls", initial_state="")
    text = client(copy, tmp_path).get(f"/episodes/{episode}").text
    assert '<p class="soft">Empty.</p>' in text
    assert 'aria-label="Initial state"></pre>' not in text


@pytest.mark.parametrize("path", ["9/observation.txt", "1/reward.txt", "0/action.txt"])
def test_the_text_of_a_missing_step_or_field_returns_404(auditor, content, path):
    assert auditor.get(f"/episodes/{content.episode}/{path}").status_code == 404


@pytest.mark.parametrize("path", ["1/observation.txt", "opening.txt"])
def test_a_text_is_shown_only_to_its_tenant_and_only_until_erasure(auditor, acme, content, path):
    assert acme.get(f"/episodes/{content.episode}/{path}").status_code == 200
    assert acme.get(f"/episodes/{content.rival_episode}/{path}").status_code == 404
    answer = auditor.get(f"/episodes/{content.erased}/{path}")
    assert (answer.status_code, "was erased" in answer.text) == (404, True)


def test_many_steps_are_paged_on_the_page_and_complete_in_the_csv(copy, tmp_path):
    episode, auditor = play(copy, *map(str, range(120))), client(copy, tmp_path)
    steps, path = [], f"/episodes/{episode}"
    while path:
        text = auditor.get(path).text
        steps += map(int, re.findall(r">Step (\d+)<", text))
        next_link = re.search(r'href="(\?from=\d+)#turns" rel="next"', text)
        path = f"/episodes/{episode}{next_link[1]}" if next_link else ""
    assert steps == list(range(1, 121))
    assert [int(row["step"]) for row in rows(auditor, f"/episodes/{episode}.csv")] == steps
    assert auditor.get(f"/episodes/{episode}?from=x").status_code == 422


@pytest.mark.parametrize(("reward", "success"), [(1.0, "yes"), (0.0, "no")])
def test_an_episode_with_a_task_shows_its_success(copy, tmp_path, reward, success):
    episode, auditor = play(copy, "ls", task=records.task()), client(copy, tmp_path)
    with copy.library.ledger._database.engine.begin() as database:
        database.exec_driver_sql("UPDATE steps SET reward = ?", (reward,))
    page = auditor.get(f"/episodes/{episode}").text
    assert re.search(rf"<dt>Success</dt><dd>[^-]*\b{success}\b", page)
    episodes = {row["episode"]: row for row in rows(auditor, f"/runs/{copy.open_run}/episodes.csv")}
    assert (episodes[episode]["task"], episodes[episode]["success"]) == (records.task().id, success)
    page = auditor.get(f"/runs/{copy.open_run}").text
    assert f"{2 * int(reward)} of 2 rewarded episodes" in page
    assert f"<dt>Mean reward</dt><dd>{reward:.3f}</dd>" in page


def test_an_episode_without_a_reward_shows_no_success(copy, tmp_path):
    empty = play(copy, close=False)
    assert "<dt>Success</dt>" not in client(copy, tmp_path).get(f"/episodes/{empty}").text
