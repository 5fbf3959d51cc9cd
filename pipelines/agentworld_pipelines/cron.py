"""Cron expressions of five fields, as Kubeflow's scheduler (robfig/cron 1) understands them.

The scheduler reads seconds first, so that a five-field expression would mean something else
there: ours is sent with a 0 before it. Names of months and days are taken, @daily and its like
are not. Sunday is 0 and not 7.
"""

from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple, Self

from agentworld.errors import InputError

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()

# From one 29th of February to the next there are eight years at most.
_FARTHEST_DAYS = 8 * 366


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: dict[str, int] = {}


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, {word: place for place, word in enumerate(_MONTHS, 1)}),
    _Field("day of the week", 0, 6, {word: place for place, word in enumerate(_DAYS)}),
)


class Cron(NamedTuple):
    """The minutes at which something is due."""

    expression: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of days are restricted: it is due on a day that is either."""

    @classmethod
    def parse(cls, expression: str) -> Self:
        """Raises InputError for what is no expression, or never due."""
        texts = expression.split()
        if len(texts) != len(_FIELDS):
            raise InputError(
                f"the cron expression {expression!r} has {len(texts)} fields; give five: minute,"
                " hour, day of the month, month, day of the week"
            )
        fields = zip(texts, _FIELDS, strict=True)
        minutes, hours, days, months, weekdays = (
            _values(text, field, expression) for text, field in fields
        )
        either = not (_is_open(texts[2]) or _is_open(texts[4]))
        cron = cls(" ".join(texts), minutes, hours, days, months, weekdays, either)
        if not cron.next_after(datetime.now(UTC)):
            raise InputError(
                f"the cron expression {expression!r} is never due; correct its day and month"
            )
        return cron

    @property
    def with_seconds(self) -> str:
        """As the server takes it."""
        return f"0 {self.expression}"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment after this one; null where there is none."""
        earliest = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for day in (earliest.date() + timedelta(days=each) for each in range(_FARTHEST_DAYS)):
            if not self._is_due_on(day.day, day.month, day.isoweekday() % 7):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    due = datetime.combine(day, time(hour, minute), moment.tzinfo)
                    if due >= earliest:
                        return due
        return None

    def _is_due_on(self, day: int, month: int, weekday: int) -> bool:
        fits = day in self.days, weekday in self.weekdays
        return month in self.months and (any(fits) if self.either_day else all(fits))


def _is_open(text: str) -> bool:
    """Whether a field restricts nothing, also where it does by its step."""
    return any(part.startswith(("*", "?")) for part in text.split(","))


def _values(text: str, field: _Field, expression: str) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        try:
            values |= set(_range(part.lower(), field))
        except ValueError:
            raise InputError(
                f"the cron expression {expression!r} has the {field.name} {part!r}; give numbers"
                f" from {field.least} to {field.most}, a-b, */n or *"
            ) from None
    return frozenset(values)


def _range(part: str, field: _Field) -> range:
    """Of one part between commas; raises ValueError."""
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span in ("*", "?"):
        low, high = field.least, field.most
    else:
        low = _number(first, field.words)
        # `5/10` is from five on.
        high = _number(last, field.words) if dash else field.most if slash else low
    if not field.least <= low <= high <= field.most:
        raise ValueError(part)
    return range(low, high + 1, _number(step, {}) if slash else 1)


def _number(text: str, words: dict[str, int]) -> int:
    if text in words:
        return words[text]
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)
