"""A simulator of several domains answers each episode in its own domain."""

import pytest

from make import records

PROMPTS = {
    "shell": records.pinned_domains("shell", system_prompt="You are a shell.")["shell"],
    "text": records.pinned_domains("text", system_prompt="You are a log.")["text"],
}


@pytest.fixture
def service(serve):
    return serve(domains=PROMPTS)


def prompt(service) -> str:
    """The system message that the engine read last."""
    return service.engine.requests[-1].messages[0]["content"]


@pytest.mark.parametrize("domain", ["shell", "text"])
def test_an_episode_uses_the_prompt_of_its_domain_and_records_the_domain(service, domain):
    episode = service.reset(domain=domain, initial_state="rimo.txt: besa")
    service.step(episode, "ls", 1)
    assert prompt(service) == f"{PROMPTS[domain].system_prompt}\nrimo.txt: besa"
    assert service.ledger.episode(episode).opening.domain == domain


def test_two_episodes_of_one_run_may_be_of_different_domains(service):
    run = service.run()
    prompts = []
    episodes = [service.reset(run, domain=domain) for domain in PROMPTS]
    for number in (1, 2):
        for episode in episodes:
            service.step(episode, f"echo {number}", number)
            prompts.append(prompt(service))
    assert prompts == ["You are a shell.", "You are a log."] * 2


def test_the_domain_of_a_task_overrides_the_domain_of_the_reset(service):
    task = records.task(domain="text").model_dump(mode="json")
    episode = service.reset(task=task, domain="shell")
    assert service.ledger.episode(episode).opening.domain == "text"
    answer = service.step(episode, "echo besa", 1).json()
    assert prompt(service).startswith("You are a log.")
    # A log has no prompt line after its output, so `besa\n[0] ~` is not the rule's `besa`.
    assert (answer["done"], answer["reward"]) == (True, 0.0)


def test_a_success_rule_is_evaluated_by_the_domain_of_the_episode(service):
    task = records.task(domain="").model_dump(mode="json")
    rewards = {}
    for domain in PROMPTS:
        episode = service.reset(task=task, domain=domain)
        rewards[domain] = service.step(episode, "echo besa", 1).json()["reward"]
    assert rewards == {"shell": 1.0, "text": 0.0}


@pytest.mark.parametrize(
    ("opening", "message"),
    [
        ({}, "this simulator has several domains; name one of shell, text"),
        ({"domain": "sql"}, "this simulator has no domain 'sql'; it has shell, text"),
    ],
    ids=["no domain", "another domain"],
)
def test_a_simulator_of_several_domains_refuses_a_missing_or_unknown_domain(
    service, opening, message
):
    answer = service.http("POST", "/episodes", {"run": service.run(), **opening})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == message


def test_a_task_of_an_unknown_domain_is_refused(service):
    task = records.task(domain="sql").model_dump(mode="json")
    answer = service.http("POST", "/episodes", {"run": service.run(), "task": task})
    assert answer.status_code == 422
    assert "has no domain 'sql'" in answer.json()["error"]["message"]


def test_a_simulator_of_one_domain_records_that_domain_by_default(serve):
    service = serve()
    run = service.run()
    named, unnamed = service.reset(run, domain="shell"), service.reset(run)
    openings = [service.ledger.episode(name).opening for name in (named, unnamed)]
    assert [opening.domain for opening in openings] == ["shell", "shell"]


@pytest.mark.parametrize("kind", ["fork", "replay"])
def test_a_fork_or_replay_keeps_the_domain_of_its_source_and_refuses_another(service, kind):
    run = service.run()
    source = service.reset(run, domain="text")
    service.step(source, "echo a", 1)
    reference = {"episode": source, "step": 1}
    episode = service.reset(run, **{kind: reference})
    assert service.ledger.episode(episode).opening.domain == "text"
    answer = service.http("POST", "/episodes", {"run": run, kind: reference, "domain": "shell"})
    assert answer.status_code == 422
    assert "takes domain from it" in answer.json()["error"]["message"]
    if kind == "fork":
        service.step(episode, "echo b", 2)
        assert prompt(service) == "You are a log."
