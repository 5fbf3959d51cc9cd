"""Templates are compiled with limits for time and memory."""

from importlib import resources

import pytest

from accepting import accepts
from agentworld.errors import InputError
from agentworld.storage.templates import compile_template, template_problem

CHAT_TEMPLATE = resources.files("agentworld.train").joinpath("chat_template.jinja").read_text()


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}",
        "{{ m | no_such_filter }}",
        "{% for a in b %}" * 30 + "{% endfor %}" * 30,
        "{{ " + "(" * 3_000 + ")" * 3_000 + " }}",
        "{{ 10 ** 5000 }}",
    ],
    ids=["open", "unknown filter", "nested loops", "nested brackets", "a long number"],
)
def test_a_template_that_does_not_compile_is_refused(template):
    with pytest.raises(InputError, match="."):
        compile_template(template)


@pytest.mark.parametrize(
    "template",
    [
        CHAT_TEMPLATE,
        "{% for m in messages %}{% generation %}{{ m }}{% endgeneration %}{% break %}{% endfor %}",
    ],
    ids=["ours", "tags of transformers"],
)
def test_a_template_that_transformers_accepts_is_accepted(template):
    assert accepts(compile_template, template)


@pytest.mark.waits
def test_template_problem_reports_only_invalid_templates():
    assert template_problem(CHAT_TEMPLATE) is None
    assert "no_such_filter" in (template_problem("{{ 'a' | no_such_filter }}") or "")
    assert template_problem("{{ '\ud800' }}") is None


@pytest.mark.waits
@pytest.mark.parametrize(
    "template", ["{{ 7 ** 99999999 }}", "{{ 'a' * 900000000 }}"], ids=["time", "memory"]
)
def test_a_template_that_takes_too_much_time_or_memory_is_reported(template):
    assert "takes too much time or memory" in (template_problem(template) or "")
