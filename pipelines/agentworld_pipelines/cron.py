"""Cron expressions of five fields, as Kubeflow's scheduler (robfig/cron 1) reads them.

The scheduler reads seconds first, so a five-field expression would have another meaning; ours is
sent with a 0 before it. Names of months and days are allowed, @daily and similar ones are not.
Sunday is 0 and not 7.
"""

import re
from datetime import UTC, datetime, time, timedelta
from itertools import product
from typing import NamedTuple, Self

from agentworld.errors import InputError

_PART = re.compile(r"(?:[*?]|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]+))?")
"""One part of a field: the first value, the last one, the step."""

# The longest time from one 29th of February to the next is eight years.
_FARTHEST_DAYS = 8 * 366


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    """The names of its values, from the smallest."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())),
    _Field("day of the week", 0, 6, tuple("sun mon tue wed thu fri sat".split())),
)


class Cron(NamedTuple):
    """A parsed cron expression."""

    expression: str
    minutes: list[int]
    hours: list[int]
    days: list[int]
    months: list[int]
    weekdays: list[int]

    @classmethod
    def parse(cls, expression: str) -> Self:
        """Raises InputError for an invalid expression, or one that is never due."""
        texts = expression.split()
        if len(texts) != len(_FIELDS):
            raise InputError(
                f"the cron expression {expression!r} has {len(texts)} fields; give five: minute,"
                " hour, day of the month, month, day of the week"
            )
        values = (_parse_field(*field, expression) for field in zip(texts, _FIELDS, strict=True))
        cron = cls(" ".join(texts), *values)
        if not cron.next_after(datetime.now(UTC)):
            raise InputError(
                f"the cron expression {expression!r} is never due; correct its day and month"
            )
        return cron

    @property
    def with_seconds(self) -> str:
        """The form that the server accepts."""
        return f"0 {self.expression}"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after this one; null if there is none."""
        earliest = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for day_number in range(_FARTHEST_DAYS):
            day = earliest.date() + timedelta(days=day_number)
            if day.month not in self.months or not self._is_due_on(day.day, day.isoweekday() % 7):
                continue
            for hour, minute in product(self.hours, self.minutes):
                due = datetime.combine(day, time(hour, minute), moment.tzinfo)
                if due >= earliest:
                    return due
        return None

    def _is_due_on(self, day: int, weekday: int) -> bool:
        """If both fields of days are restricted, either may match; a star, even with a step, is no
        restriction. This is the scheduler's own rule.
        """
        _, _, days, _, weekdays = self.expression.split()
        has_star = re.search(r"[*?]", days + weekdays)
        return (all if has_star else any)((day in self.days, weekday in self.weekdays))


def _parse_field(text: str, field: _Field, expression: str) -> list[int]:
    values: set[int] = set()
    for part in text.split(","):
        try:
            values.update(_parse_part(part.lower(), field))
        except ValueError:
            raise InputError(
                f"the cron expression {expression!r} has the {field.name} {part!r}; give numbers"
                f" from {field.least} to {field.most}, a-b, */n or *"
            ) from None
    return sorted(values)


def _parse_part(part: str, field: _Field) -> range:
    """Raises ValueError if the part is invalid for this field."""
    match = _PART.fullmatch(part)
    if not match:
        raise ValueError(part)
    low, high = field.least, field.most
    first, last, step = match.groups()
    if first:
        low = _number(first, field)
        # `5/10` means from five on
        high = _number(last, field) if last else high if step else low
    if not field.least <= low <= high <= field.most:
        raise ValueError(part)
    return range(low, high + 1, int(step or 1))


def _number(text: str, field: _Field) -> int:
    return field.names.index(text) + field.least if text in field.names else int(text)
