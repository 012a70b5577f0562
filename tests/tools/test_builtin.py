"""The tools that come with treadle."""

import ast
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.tools import SkillRegistry, Tool, ToolError
from treadle.tools.builtin import SKILLS, calculator, current_time, inventory


async def ask(made: Tool, **arguments: Any) -> dict[str, Any]:
    output = await made.call(made.validate(json.dumps(arguments)))
    assert isinstance(output.content, str)
    told: dict[str, Any] = json.loads(output.content)
    assert output.is_error == told.get("error", False)
    return told


def run(coroutine: Any) -> Any:
    """The built-in tools never wait, so one step runs them."""
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def calculate(expression: str) -> Any:
    return run(calculator(expression))["result"]


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("25 * 4 + 10", 110),
        ("100 / 4", 25),
        ("7 / 2", 3.5),
        ("0.1 + 0.2", 0.3),
        ("1.10 * 3", 3.3),
        ("1/3*3", 1),
        ("1/3", 0.333333333333333),
        ("2/3", 0.666666666666667),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 ** 10", 1024),
        ("2^10", 1024),
        ("2 ** -1", 0.5),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("0 ** 0", 1),
        ("(-1) ** 1000000000001", -1),
        ("1 ** 9 ** 9", 1),
        ("3 × 4 ÷ 2 − 1", 5),
        ("3 x 4", 12),
        ("3x4", 12),
        ("10 x (2 + 3)", 50),
        ("1,234,567 + 1", 1234568),
        ("max(1,234)", 234),
        ("25 * 4 =", 100),
        ("1_000 * 2", 2000),
        ("1e3 + 1E-3", 1000.001),
        (".5 + 5.", 5.5),
        ("sqrt(16)", 4),
        ("sqrt(2.25)", 1.5),
        ("4 ** 0.5", 2),
        ("sqrt(2)", 1.4142135623731),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.675, 2)", 2.68),
        ("round(1234, -2)", 1200),
        ("floor(-1.5) + ceil(-1.5)", -3),
        ("abs(-3) + min(1, 2) + max(1, 2) + sum(1, 2, 3)", 12),
        ("log(1000, 10)", 3),
        ("log10(0.001)", -3),
        ("ln(e)", 1),
        ("exp(0)", 1),
        ("sin(pi)", 0),
        ("cos(0)", 1),
        ("tan(0)", 0),
        ("PI", 3.14159265358979),
        ("12345678901234567.89 * 3", Decimal("37037036703703703.67")),
        ("2 ** 1000", 2**1000),
        ("1000 * (1 + 0.0415 / 12) ** 360", 3465.48342009840),
        (" + ".join(["1"] * 200), 200),
        ("+".join(["1"] * 500), 500),
    ],
)
def test_calculator(expression: str, result: object) -> None:
    assert calculate(expression) == result


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("9**9**9", "too large"),
        ("9**9**9**9", "too large"),
        ("2**100000", "too large"),
        ("(2**4000)*(2**4000)", "too large"),
        ("2**-100000", "too large"),
        ("(1 + 1/10**300) ** 10**299", "too large"),
        ("1e999999999", "too large"),
        ("1e-999999999", "too large"),
        ("exp(1000)", "too large"),
        ("sqrt(10**700 + 1)", "too large"),
        ("1" * 10_000, "10,000 characters"),
        ("(" * 10_000, "10,000 characters"),
        ("(" * 400 + "1" + ")" * 400, "nested"),
        ("-" * 900 + "1", "nested"),
        ("abs(" * 190 + "1" + ")" * 190, "nested"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-1)", "no real square root"),
        ("(-8) ** (1/3)", "no real power"),
        ("log(0)", "above 0"),
        ("log(8, 1)", "division by zero"),
        ("factorial(100000)", "no function 'factorial'"),
        ("sqt(4)", "no function 'sqt'"),
        ("round(1, 2, 3)", "takes 1 or 2"),
        ("round(1, 10**6)", "places"),
        ("__import__('os')", "cannot be used"),
        ("x.y", "not arithmetic"),
        ("().__class__", "cannot be used|not arithmetic"),
        ("a + b", "no name 'a'"),
        ("1, 2", "comma"),
        ("2(3)", "operator"),
        ("0x10", "not clear"),
        ("3j", "not clear"),
        ("1 if 2 else 3", "not arithmetic"),
        ("1 < 2", "cannot be used"),
        ("10 +", "cannot be read"),
        ("1 + * 2", "cannot be read at character 5"),
        ("10% of 200", "cannot be read"),
        ("", "empty"),
        ("what is two plus two", "cannot be read"),
        ("sqrt(x=4)", "cannot be used|only named"),
        ("max(*1)", "not arithmetic"),
    ],
)
async def test_calculator_refuses_at_once(expression: str, words: str) -> None:
    told = await ask(calculator, expression=expression)
    assert any(each in told["message"] for each in words.split("|")), told
    assert told["argument"] == "expression"


NUMBERS = st.integers(-999, 999).map(str) | st.decimals(-100, 100, places=2).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS.map(lambda number: f"({number})" if number.startswith("-") else number),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
        lambda each: f"({' '.join(each)})"
    ),
    max_leaves=12,
)


def oracle(node: ast.AST, text: str) -> Fraction:
    match node:
        case ast.Constant():
            return Fraction(ast.get_source_segment(text, node) or "")
        case ast.UnaryOp():
            return -oracle(node.operand, text)
        case ast.BinOp():
            left, right = oracle(node.left, text), oracle(node.right, text)
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
                case ast.Div():
                    return left / right
                case ast.FloorDiv():
                    return Fraction(left // right)
                case _:
                    return left % right
        case _:
            raise AssertionError(ast.dump(node))


@given(text=EXPRESSIONS)
def test_calculator_agrees_with_fractions(text: str) -> None:
    try:
        wanted = oracle(ast.parse(text, mode="eval").body, text)
    except ZeroDivisionError:
        with pytest.raises(ToolError, match="division by zero"):
            calculate(text)
        return
    answer = run(calculator(text))
    result = answer["result"]
    found = Fraction(repr(result)) if isinstance(result, float) else Fraction(result)
    if answer["exact"]:
        assert found == wanted
    else:
        assert abs(found - wanted) <= abs(wanted) * Fraction(1, 10**14)


@given(terms=st.lists(st.decimals(-(10**12), 10**12, places=2), min_size=1, max_size=20))
def test_money_adds_up_to_the_cent(terms: list[Decimal]) -> None:
    answer = run(calculator(" + ".join(f"({term})" for term in terms)))
    assert answer["exact"]
    assert Decimal(str(answer["result"])) == sum(terms)


@given(text=st.text(max_size=1_100) | st.text("0123456789.+-*/%()^ ,xe_sqrtloginmax", max_size=200))
def test_calculator_on_any_text_ends_in_a_result_or_a_tool_error(text: str) -> None:
    try:
        result = calculate(text)
    except ToolError:
        return
    assert isinstance(result, int | float | Decimal)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given_name", "zone"),
    [
        ("UTC", "UTC"),
        ("", "UTC"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("tokyo", "Asia/Tokyo"),
    ],
)
async def test_current_time(given_name: str, zone: str) -> None:
    told = await ask(current_time, timezone=given_name)
    moment = datetime.fromisoformat(told["iso"])
    assert told["timezone"] == zone
    assert timedelta(seconds=-5) <= datetime.now(UTC) - moment <= timedelta(seconds=60)
    assert moment.utcoffset() == moment.astimezone(ZoneInfo(zone)).utcoffset()
    assert told["iso"] == f"{told['date']}T{told['time']}{told['utc_offset']}"
    assert told["weekday"] == moment.strftime("%A")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given_name", "offset"),
    [("GMT+2", "+02:00"), ("utc-3", "-03:00"), ("UTC +05:30", "+05:30"), ("-0930", "-09:30"), ("Etc/GMT+2", "-02:00")],
)
async def test_an_offset_is_what_people_mean_by_it(given_name: str, offset: str) -> None:
    told = await ask(current_time, timezone=given_name)
    assert told["utc_offset"] == offset
    assert datetime.fromisoformat(told["iso"]) - datetime.now(UTC) < timedelta(minutes=1)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given_name", "nearest"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Tokio", "Asia/Tokyo"),
        ("../../etc/passwd", None),
        ("Mars", None),
        ("UTC+25", "UTC"),
        ("\x00", None),
    ],
)
async def test_unknown_zone(given_name: str, nearest: str | None) -> None:
    told = await ask(current_time, timezone=given_name)
    assert told.get("nearest") == nearest
    assert told["argument"] == "timezone"
    assert "Europe/Berlin" in told["available"]
    assert len(told["available"]) <= 10


CHECK, PRICE, TOTAL = inventory.tools


@pytest.mark.anyio
@pytest.mark.parametrize("product", ["gadgets", "gadget", "Gadgets", " GADGET "])
async def test_inventory_chains(product: str) -> None:
    stock = await ask(CHECK, product=product)
    price = await ask(PRICE, product=stock["product"])
    total = await ask(TOTAL, quantity=stock["quantity"], unit_price=price["unit_price"])
    assert stock["product"] == price["product"] == "gadgets"
    assert (total["quantity"], total["unit_price"], total["currency"]) == (
        stock["quantity"],
        price["unit_price"],
        "USD",
    )
    assert Decimal(total["total"]) == stock["quantity"] * Decimal(price["unit_price"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("quantity", "unit_price", "total"),
    [(1000, "12.99", "12990.00"), (10**12, "1234567890.1234567890123", "1234567890123456789012.3000000000000")],
)
async def test_inventory_totals_are_exact_under_every_decimal_context(
    quantity: int, unit_price: str, total: str
) -> None:
    for digits in (3, 28):
        with localcontext(prec=digits):
            assert (await ask(TOTAL, quantity=quantity, unit_price=unit_price))["total"] == total


@pytest.mark.anyio
async def test_inventory_unknown_product_lists_what_there_is() -> None:
    told = await ask(CHECK, product="gizmoz")
    assert (told["argument"], told["given"], told["nearest"]) == ("product", "gizmoz", "gizmos")
    assert "widgets" in told["available"]


@pytest.mark.parametrize("quantity", ["-1", '"many"', "1.5", "1e30"])
def test_inventory_refuses_impossible_quantities(quantity: str) -> None:
    with pytest.raises(ToolError) as caught:
        TOTAL.validate(f'{{"unit_price": "12.50", "quantity": {quantity}}}')
    assert caught.value.hints["argument"] == "quantity"


def test_skills_fit_together_and_say_what_they_return() -> None:
    registry = SkillRegistry(SKILLS.values())
    assert set(SKILLS) == {"basics", "inventory"}
    for made in registry.tools:
        assert made.effect == "read"
        assert made.description
        assert made.output_schema is not None
        assert made.output_schema["type"] == "object"
        assert all("description" in each for each in made.input_schema["properties"].values())
