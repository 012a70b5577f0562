"""Filters: which rows of a source are looked at.

A filter names a dimension, never a column or a piece of SQL; `asking.rows` turns it into a condition with bound
values. What is null counts as a value of its own: `!=` and `not in` keep rows without a value, `=` and `in` drop
them.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from treadle.analyst.declared.period_sets import PERIOD_SETS, is_day, period_set
from treadle.visible import seen, visible

Operator = Literal[
    "=", "!=", "in", "not in", "<", "<=", ">", ">=", "between", "like", "is null", "is not null", "ytd", "qtd",
    "rolling", "under",
]  # fmt: skip
Ends = Literal["both", "left", "right", "neither"]
Scalar = str | int | float | bool

_SPELLINGS = {"==": "=", "eq": "=", "<>": "!=", "ne": "!=", "is not": "!=", "notin": "not in", "not_in": "not in"}
_LISTS = ("in", "not in", "between")
_PARTED = re.compile(r"^[=<>(\[]|,|\s(and|or)\s", re.IGNORECASE)


def _spelling(op: object) -> object:
    """The operator as treadle writes it, for `==`, `IN`, `not_in` and their kind."""
    if not isinstance(op, str):
        return op
    text = " ".join(op.lower().replace("_", " ").split())
    return _SPELLINGS.get(text, text)


def _plain(value: object) -> object:
    """Dates and decimals as text, which every dimension can read exactly."""
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


KeyValue = Annotated[Scalar | None, BeforeValidator(_plain)]
"""The value of a dimension in a key, as a comparison or a person tells it."""


class Filter(BaseModel):
    """One condition on a dimension; several filters must all hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimension: str = Field(description="name of the dimension, as list_sources shows it")
    op: Annotated[Operator, BeforeValidator(_spelling)] = Field(
        default="=",
        description="'in' and 'not in' take a list, 'between' a list of two (see inclusive), "
        "'like' a pattern with % and _, 'is null' and 'is not null' no value; 'ytd' and 'qtd' take the last period or "
        "day of a year or quarter to date, 'rolling' a list of the last period and how many; these become a 'between'; "
        "'under' takes a group of a hierarchy, for all that is below it",
    )
    value: Annotated[Scalar | list[Scalar | None] | None, BeforeValidator(_plain)] = Field(
        default=None, description="the value, or a list of values for 'in', 'not in' and 'between'"
    )

    inclusive: Ends = Field(
        default="both", description="which ends of 'between' belong to it; 'left': from the first up to before the last"
    )

    _set: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _set_means_between(cls, data: Any, made: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, Mapping) and isinstance(data.get("op"), str) and _spelling(data["op"]) in PERIOD_SETS:
            given: dict[str, Any] = {"op": str(_spelling(data["op"])), "value": _plain(data.get("value"))}
            found = made({**data, "op": "between", "value": period_set(**given)})
            found._set = given
            return found
        return made(data)

    @model_serializer(mode="wrap")
    def _as_given(self, made: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given = self._given
        return {name: given.get(name, value) for name, value in made(self).items()}

    @model_validator(mode="before")
    @classmethod
    def _list_means_in(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "op" not in data and isinstance(data.get("value"), (list, tuple, set)):
            return {**data, "op": "in"}
        return data

    @model_validator(mode="after")
    def _value_fits_operator(self) -> Self:
        is_list = isinstance(self.value, list)
        if self.op in ("is null", "is not null"):
            if self.value is not None:
                raise ValueError(f"{self.op!r} takes no value")
        elif self.value is None:
            raise ValueError(f"{self.op!r} needs a value; to look for rows without one use 'is null'")
        elif is_list != (self.op in _LISTS):
            raise ValueError(f"{self.op!r} needs {'a list of values' if self.op in _LISTS else 'a single value'}")
        elif self.op == "between" and (len(self.values) != 2 or None in self.values):
            raise ValueError("'between' needs a list of exactly two values, from and to; for one end, use '>=' or '<='")
        if self.inclusive != "both" and self.op != "between":
            raise ValueError(f"'inclusive' says which ends belong to a 'between', not to {self.op!r}")
        return self

    @property
    def values(self) -> list[Scalar | None]:
        """The value or values as a list."""
        if self.value is None:
            return []
        return list(self.value) if isinstance(self.value, list) else [self.value]

    @property
    def ends(self) -> tuple[Operator, Operator]:
        """What holds against the two ends of a `between`."""
        first: Operator = ">=" if self.inclusive in ("both", "left") else ">"
        return first, "<=" if self.inclusive in ("both", "right") else "<"

    @property
    def _given(self) -> dict[str, Any]:
        """The set that it was given as; nothing if it was none, or is a copy with another value."""
        same = self._set and self.op == "between" and self.value == period_set(**self._set)
        return self._set if same else {}

    @property
    def of_periods(self) -> bool:
        """Whether it was given as a set of fiscal periods, such as `ytd`."""
        return bool(self._given) and not is_day(str(self.values[1]))

    @property
    def to_the_end(self) -> "Filter":
        """The filter for points in time: of a set of days, the last one is in it to its end."""
        if (
            not self._given
            or self.of_periods
            or self.inclusive not in ("both", "right")
            or self.values[1] == str(date.max)
        ):
            return self
        first, last = map(str, self.values)
        after = date.fromisoformat(last) + timedelta(days=1)
        ends: Ends = "left" if self.inclusive == "both" else "neither"
        return Filter(dimension=self.dimension, op="between", value=[first, str(after)], inclusive=ends)

    @property
    def fixes(self) -> bool:
        """Whether only one value of the dimension passes."""
        return self.op == "=" or self.op == "is null" or (self.op == "in" and len(self.values) == 1)

    @property
    def written(self) -> str:
        """It as one text, its values as they are: what is kept knows it again by that, however it is shown."""
        return self._told(str, str)

    def __str__(self) -> str:
        told = self._told(_alone, lambda values: visible(str(values)))
        return told if self.to_the_end is self else f"{told} (all of {self.values[1]})"

    def _told(self, one: Callable[[object], str], several: Callable[[object], str]) -> str:
        if not self.values:
            return f"{self.dimension} {self.op}{' []' if self.op in _LISTS else ''}"
        single = len(self.values) == 1 and self.op not in _LISTS
        shown = one(self.values[0]) if single else several(self.values)
        ends = "" if self.inclusive == "both" else f" (inclusive: {self.inclusive})"
        return f"{self.dimension} {self.op} {shown}{ends}"


def _alone(value: object) -> str:
    """A single value in words; in quotes where it would look like several, or like a part of another condition."""
    told = seen(value)
    sign = '"' if "'" in told else "'"
    return f"{sign}{told}{sign}" if told == value and _PARTED.search(told) else told


def _from_mapping(value: object) -> object:
    """`{"company": "1001"}` as the list of filters that it means."""
    if isinstance(value, Mapping) and not ({"dimension", "op", "value"} & set(value)):
        return [
            {"dimension": name, "op": "is null"} if given is None else {"dimension": name, "value": given}
            for name, given in value.items()
        ]
    return [value] if isinstance(value, Mapping) else value


Filters = Annotated[list[Filter], BeforeValidator(_from_mapping)]


class Under(Filter):
    """A filter on a group of a hierarchy, once it is known what is below it.

    Attributes:
        names: the group and what is below it, spelled as values of the dimension are.
        ranges: the ranges of values that are below it, each with its first and its last.
    """

    names: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
