"""The page of the reference about the forms of logs and their options, from the importers."""

import inspect
import sys
from collections.abc import Sequence

from reference_text import default, head, page, row

from agentworld.data.importers import ImportOptions, importer_of
from agentworld.data.importers.base import module_of, own_forms
from agentworld.records.fields import FieldDescription, describe_fields

_COMMON = "Options of every form"
_EXAMPLE = """\
```sh
agentworld data import logs.jsonl --format messages --set task=meta.case --explain 1
```

The command imports nothing. It shows what an import with these options makes of the first record.
"""


def formats() -> str:
    """A section for each form that is shipped; the options that all have stand once."""
    text = page(
        "Forms of logs",
        "After this page you can choose the options with which an import reads your logs."
        " `agentworld data import SOURCE` recognises the form of a log. `--format FORM` names it,"
        " and `--set OPTION=VALUE` sets an option; in a recipe these are `collect.format` and"
        " `collect.options`. A path such as `state.steps.0` leads through keys and list positions."
        " [From your logs to a simulator](../guides/from-logs.md) imports the first log.",
    )
    text += f"\n{_EXAMPLE}"
    text += f"\n## {_COMMON}\n\n{_table(describe_fields(ImportOptions))}"
    return text + "".join(map(_form, own_forms()))


def _form(name: str) -> str:
    options = importer_of(name).options  # it imports the module
    meaning = inspect.cleandoc(sys.modules[module_of(name)].__doc__ or "")
    own = [
        field for field in describe_fields(options) if field.name not in ImportOptions.model_fields
    ]
    table = _table(own) if own else "It has no options of its own.\n"
    return f"\n## {name}\n\n{meaning}\n\n{table}"


def _table(fields: Sequence[FieldDescription]) -> str:
    rows = (
        row(
            f"`{field.name}`",
            field.type.replace("``", "empty"),
            "required" if field.required else default(field.default),
            field.meaning,
        )
        for field in fields
    )
    return head("option", "type", "default", "meaning") + "".join(rows)
