"""Numbers keep every digit on their way into a tool and out of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, RootModel, WrapValidator, model_validator
from typing_extensions import TypedDict

from treadle.tools import InvalidArguments, Tool, ToolResult, encode, external_tool, tool

LONG = "100000000000000000.01"
EXACT = Decimal(LONG)


class Line(BaseModel):
    price: Decimal = Field(validation_alias=AliasChoices("price", "cost"))
    parts: "list[Line]" = []


class Root(RootModel[Decimal]):
    pass


@dataclass
class Pair:
    a: Decimal
    b: float


class Named(NamedTuple):
    a: Decimal
    b: float


class Typed(TypedDict):
    a: Decimal | None


@pytest.mark.parametrize(
    ("annotation", "given", "wanted"),
    [
        (Decimal, LONG, EXACT),
        (Decimal | None, LONG, EXACT),
        (int | Decimal, LONG, EXACT),
        (Decimal | str, LONG, EXACT),
        (Annotated[Decimal, Field(ge=0, max_digits=30)], LONG, EXACT),
        (list[Decimal], f"[{LONG}, 1]", [EXACT, Decimal(1)]),
        (Sequence[Decimal], f"[{LONG}]", [EXACT]),
        (tuple[float, Decimal], f"[0.5, {LONG}]", (0.5, EXACT)),
        (tuple[Decimal, ...], f"[0.5, {LONG}]", (Decimal("0.5"), EXACT)),
        (dict[str, Decimal], f'{{"x": {LONG}}}', {"x": EXACT}),
        (Mapping[str, list[Decimal]], f'{{"x": [{LONG}]}}', {"x": [EXACT]}),
        (Root, LONG, Root(EXACT)),
        (Pair, f'{{"a": {LONG}, "b": 0.5}}', Pair(EXACT, 0.5)),
        (Named, f"[{LONG}, 0.5]", Named(EXACT, 0.5)),
        (Typed, f'{{"a": {LONG}}}', {"a": EXACT}),
        (Line, f'{{"cost": 1, "parts": [{{"price": {LONG}}}]}}', Line(price=1, parts=[Line(price=EXACT)])),
        (float, "0.10", 0.1),
        (Any, "0.10", 0.1),
    ],
)
def test_a_decimal_keeps_every_digit(annotation: Any, given: str, wanted: Any) -> None:
    def take(value: Any, beside: Decimal = Decimal(0), rate: float = 0.0) -> None: ...

    take.__annotations__["value"] = annotation
    schema = {"type": "object", "properties": {"value": {}, "beside": {}, "rate": {"type": "number"}}}
    by_schema = Tool.from_schema("take", "", {**schema, "required": ["value"]}, take)
    for made in (tool(take), by_schema):
        found = made.validate(f'{{"value": {given}, "rate": 0.10}}')
        assert (found["value"], found["rate"], type(found["rate"])) == (wanted, 0.1, float)
        assert type(found["value"]) is type(wanted)


def test_ends_of_zeros_are_kept_too() -> None:
    @tool
    def pay(amount: Decimal) -> None: ...

    for written in ("12.50", "12.0", "-0.0", "100.0"):
        assert str(pay.validate(f'{{"amount": {written}}}')["amount"]) == written


def test_a_bound_is_checked_on_what_was_written() -> None:
    @tool
    def pay(amount: Annotated[Decimal, Field(le=Decimal(10**17))]) -> None: ...

    with pytest.raises(InvalidArguments, match="'amount'"):
        pay.validate(f'{{"amount": {LONG}}}')


def test_what_a_model_describes_is_exact_with_and_without_a_function() -> None:
    def pay(price: Decimal, parts: list[Line]) -> None: ...

    made = Tool.from_schema("pay", "", Line, pay)
    assert made.validate(f'{{"price": {LONG}}}')["price"] == EXACT
    assert external_tool("pay", "", Line).validate(f'{{"price": {LONG}}}')["price"] == LONG


@given(number=st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**30), max_value=10**30))
def test_any_number_as_it_was_written(number: Decimal) -> None:
    written = f"{number:f}"
    assert str(pays.validate(f'{{"amount": {written}}}')["amount"]) == written


@tool
def pays(amount: Decimal) -> None: ...


@pytest.mark.parametrize("value", [EXACT, Line(price=EXACT), Pair(EXACT, 0.5), {"a": [EXACT]}])
def test_a_result_has_all_digits(value: Any) -> None:
    output = encode(ToolResult(value, for_app=value), 1_000)
    assert isinstance(output.content, str)
    assert LONG in output.content
    assert LONG in str(output.app)


def _cents(value: Any) -> Any:
    return value / 100 if isinstance(value, int | float) else value


class Doubled(BaseModel):
    price: Decimal

    @model_validator(mode="before")
    @classmethod
    def double(cls, values: Any) -> Any:
        return {"price": values["price"] * 2}


class MadeByHand(BaseModel):
    price: Decimal

    def __init__(self, **values: Any) -> None:
        super().__init__(price=values["price"] * 2)


@pytest.mark.parametrize("written", ["1250", "1250.0", "1250.00", "12500e-1"])
@pytest.mark.parametrize(
    ("annotation", "shape", "wanted"),
    [
        (Annotated[Decimal, BeforeValidator(_cents)], "{}", Decimal("12.5")),
        (Annotated[Decimal | None, BeforeValidator(_cents)], "{}", Decimal("12.5")),
        (Annotated[Decimal, WrapValidator(lambda value, read: read(value * 2))], "{}", Decimal(2500)),
        (list[Annotated[Decimal, BeforeValidator(lambda value: round(value, 1))]], "[{}]", [Decimal(1250)]),
        (Doubled, '{{"price": {}}}', Doubled(price=Decimal(1250))),
        (MadeByHand, '{{"price": {}}}', MadeByHand(price=Decimal(1250))),
    ],
)
def test_a_function_that_is_given_a_number_first_gets_the_same_whichever_way_it_is_written(
    annotation: Any, shape: str, wanted: Any, written: str
) -> None:
    def take(it: Any) -> None:
        """Takes it."""

    take.__annotations__["it"] = annotation
    assert tool(take).validate(f'{{"it": {shape.format(written)}}}')["it"] == wanted


def test_digits_that_such_a_function_would_not_get_are_refused_and_taken_as_text() -> None:
    @tool
    def take(it: Annotated[Decimal, BeforeValidator(lambda value: value)]) -> None:
        """Takes it."""

    with pytest.raises(InvalidArguments, match="digits that would be lost; write at most 15, or write it as text"):
        take.validate(f'{{"it": {LONG}}}')
    assert take.validate(f'{{"it": "{LONG}"}}') == {"it": EXACT}
