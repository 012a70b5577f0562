"""Numbers that a model wrote reach a function as they were written, or not at all."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from treadle import Agent, Tool, ask_before, tool
from treadle.testing import ScriptedModel
from treadle.tools import InvalidArguments

pytestmark = pytest.mark.anyio

MANY = "1.00000000000000000000001"


class Order(BaseModel):
    amount: Decimal
    note: Any = None
    weight: float = 0


def order(amount: Decimal, note: Any = None, weight: float = 0, count: int = 0, parts: dict[str, Any] | None = None):
    return amount, note, weight, count, parts


NUMBER = {"type": "object", "properties": {"amount": {"type": "number"}, "note": {}}, "required": ["amount"]}
TYPED = tool(effect="read", description="Orders a thing.")(order)
OF_MODEL = Tool.from_schema("order", "Orders a thing.", Order, lambda **given: given, effect="read")
OF_SCHEMA = Tool.from_schema("order", "Orders a thing.", NUMBER, lambda **given: given, effect="read")
OF_BOTH = Tool.from_schema("order", "Orders a thing.", NUMBER, order, effect="read")


@pytest.mark.parametrize("one", [TYPED, OF_MODEL, OF_SCHEMA, OF_BOTH], ids=["typed", "model", "schema", "both"])
@pytest.mark.parametrize("number", ["1e400", "-1e999", MANY, "1e-400", "123456789012345.678901"])
def test_a_number_that_would_become_another_beside_a_decimal_is_refused(one, number):
    with pytest.raises(InvalidArguments, match=r"order: the argument 'note' (should be a finite|has digits)"):
        one.arguments.parse(f'{{"amount": 1, "note": {number}}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 1, "parts": {"a": [1e400]}}',
        f'{{"amount": 1, "parts": {{"a": [{MANY}]}}}}',
        '{"amount": 1, "weight": 1e400}',
        f'{{"amount": 1, "count": {MANY}}}',
        '{"amount": 1, "count": 12345678901234567.0}',
        '{"amount": 1, "count": 1e23}',
    ],
)
def test_a_number_deep_within_or_in_place_of_a_whole_one_is_refused(text):
    with pytest.raises(InvalidArguments, match=r"should be a|has digits"):
        TYPED.arguments.parse(text)


@pytest.mark.parametrize("number", [MANY, "1e400", "-0.10", "1E+2", "12345678901234567890.5"])
def test_a_decimal_has_every_digit_also_under_a_schema(number):
    for one in (TYPED, OF_MODEL, OF_BOTH):
        found = one.arguments.parse(f'{{"amount": {number}}}')["amount"]
        assert str(found) in (number, str(Decimal(number)))


def test_a_schema_bounds_the_decimal_and_not_the_float_of_it():
    bounded = {"type": "object", "properties": {"amount": {"type": "number", "maximum": 5}}, "required": ["amount"]}
    one = Tool.from_schema("order", "Orders a thing.", bounded, order, effect="read")
    assert one.arguments.parse('{"amount": 4.99999999999999999999}')["amount"] == Decimal("4.99999999999999999999")
    with pytest.raises(InvalidArguments, match="greater than the maximum") as refused:
        one.arguments.parse('{"amount": 5.00000000000000000001}')
    assert refused.value.hints["given"] == "5.00000000000000000001"


def test_a_float_is_rounded_as_floats_are():
    assert TYPED.arguments.parse('{"amount": 1, "weight": 3.14159265358979323846264}')["weight"] == 3.141592653589793


def test_the_model_is_told_which_number_and_can_write_it_otherwise():
    turns = [[("order", f'{{"amount": {MANY}}}')], [("order", '{"amount": 1.5}')], "done"]
    result = Agent(ScriptedModel(turns), tools=[OF_SCHEMA]).run_sync("go")
    first, second = result.tool_calls_made
    told = json.loads(first.result.content)
    assert (told["argument"], told["given"]) == ("amount", MANY)
    assert (first.result.is_error, second.result.text) == (True, '{"amount":1.5}')


async def test_a_number_that_no_float_holds_is_shown_to_whoever_decides_as_it_is():
    turns = [[("order", '{"amount": 1e400}')], "done"]
    agent = Agent(ScriptedModel(turns), tools=[TYPED], approvals=[ask_before("order")])
    waiting = await agent.run("go")
    assert waiting.pending[0].arguments == {"amount": Decimal("1e400")}
    result = await agent.resume(waiting, approve=waiting.pending)
    assert result.tool_calls_made[0].arguments == {"amount": Decimal("1e400")}


@pytest.mark.parametrize(("kind", "said"), [(int, MANY), (int, "1e23"), (Any, MANY), (Any, "1e400")])
def test_a_typed_answer_of_another_number_than_was_said_is_said_again(kind, said):
    model = ScriptedModel([said, "7"])
    result = Agent(model, output=kind, output_mode="prompted").run_sync("How many?")
    assert result.output == 7
    assert said in model.requests[1].messages[-1].text


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_any_number_is_the_same_number_or_refused(text):
    for one in (OF_SCHEMA, TYPED):
        try:
            found = one.arguments.parse(f'{{"amount": 1, "note": {text}}}')["note"]
        except InvalidArguments:
            continue
        assert Decimal(str(found)) == Decimal(text)
    try:
        whole = TYPED.arguments.parse(f'{{"amount": 1, "count": {text}}}')["count"]
    except InvalidArguments:
        return
    assert whole == Decimal(text)
