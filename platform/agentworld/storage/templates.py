"""Compiles an external chat template in the sandbox of Jinja that transformers uses.

Jinja evaluates constants during compilation: `{{ 7 ** 99999999 }}` keeps a processor busy, so
compilation runs in a separate process.
"""

from functools import lru_cache

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentworld.errors import InputError
from agentworld.storage.limited import answer, ask, bound

_SECONDS, _GIB = 3, 1


@lru_cache(64)
def template_problem(template: str) -> str | None:
    """The reason why a template is invalid or too expensive to compile; null if it compiles."""
    return ask(__name__, template, "compiling it takes too much time or memory")


def compile_template(template: str) -> None:
    """Raises InputError for an invalid template."""
    sandbox = ImmutableSandboxedEnvironment(extensions=[_Generation, loopcontrols])
    try:
        sandbox.compile(template)
    # Python's own limits raise these: of nested blocks, of digits, of depth.
    except (TemplateError, SyntaxError, ValueError, RecursionError) as error:
        raise InputError(" ".join(str(error).split())[:200]) from error


class _Generation(Extension):
    """A tag of transformers around a model's output; only its syntax is parsed here."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _check(template: str) -> None:
    bound(_SECONDS, _GIB)
    compile_template(template)


if __name__ == "__main__":
    answer(_check)
