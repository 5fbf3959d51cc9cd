import asyncio

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.live import Observation
from agentworld.domains.programs import Program
from agentworld.domains.sheet import DomainSheet, domain_sheet
from agentworld.errors import EnvironmentBroken, EnvironmentUnavailable, InputError
from make.live_domains import ScriptedDomain, registered

MISSING_PROGRAM = Program("world-tool", "world-tools")


def read_sheet(name: str) -> DomainSheet:
    return asyncio.run(domain_sheet(name))


def test_the_sheet_of_a_live_domain_shows_a_turn_in_its_environment(monkeypatch):
    domain = ScriptedDomain(lambda action: Observation(f"{action}!"), frozenset({"tool"}))
    registered(monkeypatch, "text", domain)
    sheet = read_sheet("text")
    assert (sheet.has_environments, sheet.unavailable) == (True, "")
    assert (sheet.example.action, sheet.example.observation) == ("action 1", "action 1!")
    assert sheet.example.instruction == "report rimo.txt"
    assert (sheet.families, sheet.launchers) == ({"report": "report rimo.txt"}, ("tool",))
    assert not domain.environments[0].is_open


def test_a_program_that_is_missing_is_shown_as_missing(monkeypatch):
    present_program = Program("sh", "dash", path="/bin")
    registered(monkeypatch, "text", ScriptedDomain(programs=(present_program, MISSING_PROGRAM)))
    needs = [(need.program, need.package, need.is_missing) for need in read_sheet("text").needs]
    assert needs == [("sh", "dash", False), ("world-tool", "world-tools", True)]


def test_an_unavailable_environment_shows_an_action_and_the_reason(monkeypatch):
    def refuse() -> None:
        raise EnvironmentUnavailable("no sandbox: install one")

    domain = ScriptedDomain()
    monkeypatch.setattr(domain, "check_available", refuse)
    registered(monkeypatch, "text", domain)
    sheet = read_sheet("text")
    assert sheet.unavailable == "no sandbox: install one"
    assert (sheet.example.action, sheet.example.observation) == ("help", None)
    assert domain.environments == []


def test_a_broken_environment_shows_a_reason_and_no_observation(monkeypatch):
    registered(monkeypatch, "text", ScriptedDomain(lambda _: EnvironmentBroken("it ended")))
    sheet = read_sheet("text")
    assert (sheet.unavailable, sheet.example.observation) == ("it ended", None)


def test_a_domain_of_recorded_logs_has_a_sheet_without_needs():
    sheet = read_sheet("screen")
    assert (sheet.has_environments, sheet.needs, sheet.families) == (False, (), {})
    assert (sheet.axes, sheet.example.action) == ((), domain_of("screen").question(0).action)


def test_each_prompt_variant_has_its_pools_and_its_text():
    variants = {variant.number: variant for variant in read_sheet("screen").prompt_variants}
    assert sorted(variants) == list(range(12))
    assert variants[0].pools == ("rl", "held_out")
    assert variants[1].pools == ("cpt",)
    assert {variants[number].pools for number in range(2, 12)} == {("sft",)}
    assert "An observation is the whole screen" in variants[0].text


@pytest.mark.compute
def test_the_sheet_of_the_shell_shows_a_live_observation():
    sheet = read_sheet("shell")
    assert {need.package for need in sheet.needs} == {"bubblewrap", "util-linux", "mount"}
    assert (sheet.unavailable, sheet.launchers) == ("", ("bwrap",))
    assert list(sheet.families) == ["create", "edit", "find", "report"]
    assert sheet.example.observation is not None
    assert sheet.example.observation.endswith("[0] ~")
    assert DomainSheet.model_validate_json(sheet.model_dump_json()) == sheet


def test_an_unknown_domain_is_refused_and_the_known_domains_are_listed():
    with pytest.raises(InputError, match="there is no domain 'nowhere' here; there is mcp"):
        read_sheet("nowhere")
