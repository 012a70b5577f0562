"""Amounts: in every engine the exact sum, or a refusal, or a figure that is called approximate; never a wrong one."""

from decimal import Context, Decimal
from typing import Any

import pytest

from treadle.analyst import AnalystError

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
FILES = ("csv", "json", "sqlite")
TYPED = ("parquet", "duckdb", "frame")
SERVER = ("postgres", "alchemy-postgres")
ALL = (*FILES, *TYPED, *SERVER)

SUMS: dict[str, tuple[tuple[str, ...], str, list[Any], str]] = {
    # trap: engines, type, values, sum
    "ints over 2**53": ((*ALL, "alchemy-sqlite"), "integer", [2**53 + 1, 2**53 + 3, 1], "18014398509481989.00"),
    "sums over 2**63": (ALL, "integer", [2**63 - 1, 2**63 - 1, 5], "18446744073709551619.00"),
    "decimals over 15 digits": (ALL, "decimal", ["9007199254740993.01", "0.02"], "9007199254740993.03"),
    "decimals over 30 digits": (ALL, "wide", ["123456789012345678901234567890.12345678", "0.00000001"],
                                "123456789012345678901234567890.12345679"),
    "mixed scales": (ALL, "wide", ["1.5", "1.25", "1.125", "1e3"], "1003.875"),
    "minus zero": ((*ALL, "alchemy-sqlite"), "float", ["-0.0", "0"], "0.00"),
    "a zero made of opposites": (ALL, "decimal", ["0.10", "0.20", "-0.30"], "0.00"),
    "order of float sums": ((*ALL, "alchemy-sqlite"), "float", ["0.1"] * 10, "1.00"),
    "large and small floats": (ALL, "float", ["1e16", "1", "-1e16", "0.1"], "1.10"),
    "one empty amount": ((*ALL, "alchemy-sqlite"), "integer", [None, 5, None], "5.00"),
}  # fmt: skip
_SUMS = [pytest.param(engine, *case[1:], id=f"{trap}-{engine}") for trap, case in SUMS.items() for engine in case[0]]


@pytest.mark.parametrize(("engine", "kind", "values", "expected"), _SUMS)
def test_sums(world: Any, engine: str, kind: str, values: list[Any], expected: str) -> None:
    """Of each group, whatever the order of its rows, and of all of them."""
    orders = dict.fromkeys(map(tuple, [values, values[::-1], sorted(values, key=lambda value: D(value or 0))]))
    rows = [(str(at), value) for at, order in enumerate(orders) for value in order]
    world.lay(engine, "a", rows, types=("text", kind))
    sums = [*world.by_key().values(), world.total()]
    if engine == "alchemy-sqlite" and kind == "float":
        sums = [D(each).quantize(D("0.01")) for each in sums]
    whole = Context(prec=60).multiply(D(expected), D(len(orders)))
    assert [str(each) for each in sums] == [*([expected] * len(orders)), str(whole)]


REFUSED: dict[str, tuple[tuple[str, ...], str, list[Any], str]] = {
    # trap: engines, type, values, a piece of what is said
    "integer overflow": (("duckdb", "frame"), "DECIMAL(38, 0)", ["9" * 38, "9" * 38], "too large|not what its column"),
    "more than 38 digits": ((*FILES, *SERVER), "wide", ["1" * 31, "0.00000001"], "38"),
    "infinity": (TYPED, "float", ["inf", "1"], "floating-point values that cannot be added up"),
    "infinity in text": (("csv", "json"), "float", ["Infinity", "1"], "no number"),
    "infinity in SQLite": (("sqlite", "alchemy-sqlite"), "float", ["inf", "1"], "cannot be added up"),
    "infinity in PostgreSQL": (SERVER, "float", ["Infinity", "1"], "infinity|no number|cannot be added up"),
    "infinity as numeric": (SERVER, "wide", ["Infinity", "1"], "infinity|no number"),
    "overflow of a sum in SQLite": (("alchemy-sqlite",), "integer", [2**63 - 1, 1], "could not do it"),
    "text among numbers": (("csv", "json", "sqlite"), "text", ["5", "n/a"], "no number"),
    "text among numbers in a sum of SQLite's": (("alchemy-sqlite",), "integer", [5, "n/a"], "hold text"),
    "text that is declared an amount": (SERVER, "text", ["5"], "is text"),
}
_REFUSED = [
    pytest.param(engine, *case[1:], id=f"{trap}-{engine}") for trap, case in REFUSED.items() for engine in case[0]
]


@pytest.mark.parametrize(("engine", "kind", "values", "message"), _REFUSED)
def test_what_has_no_exact_sum_is_refused(world: Any, engine: str, kind: str, values: list[Any], message: str) -> None:
    world.lay(engine, "a", [("x", value) for value in values], types=("text", kind))
    with pytest.raises(AnalystError, match=message):
        world.total()


@pytest.mark.parametrize("kind", ["float", "wide"])
@pytest.mark.parametrize("engine", [*TYPED, *SERVER])
def test_nan_is_left_out_and_told(world: Any, engine: str, kind: str) -> None:
    if kind == "wide" and engine in TYPED:
        pytest.skip("a decimal of DuckDB cannot be NaN")
    world.lay(engine, "a", [("x", "NaN"), ("x", "2.5"), ("x", None)], types=("text", kind))
    found = world.ask()
    assert found.totals == {"amount": D("2.50")}
    assert [text for text in found.warnings if "1 row holds NaN and is left out" in text]


@pytest.mark.parametrize("engine", [*ALL, "alchemy-sqlite"])
def test_all_null_groups_have_no_amount_and_are_no_zero(world: Any, engine: str) -> None:
    rows = [("x", None), ("x", None), ("y", 0), ("z", 3)]
    world.lay(engine, "a", rows, types=("text", "integer"))
    assert world.by_key() == {"x": None, "y": D(0), "z": D(3)}
    world.lay(engine, "b", [("x", 0), ("y", None), ("z", 3)], types=("text", "integer"))
    found = {row.key["key"]: (row.status, row.source_a_value, row.source_b_value) for row in world.confront().rows}
    assert found == {"x": ("match", None, D(0)), "y": ("match", D(0), None), "z": ("match", D(3), D(3))}


SIGNS = [".", "5e", "e5", "--5", "-5-", "+5-", "1_0", "0x10", "5%", "1,0", "1 0", "\uff15",
         "\u0665", "NULL", "n/a", "true", "#REF!", "1e", "1.2.3"]  # fmt: skip
READ = {"5.": 5, "+.5": "0.5", "-.5": "-0.5", "5-": -5, "5.10-": "-5.10", "\u00a05\u00a0": 5, "1E+2": 100, "0e99": 0,
        "5\n": 5, "00005": 5, "(5)": -5, "\u22125": -5, "5 -": -5, "5\u00a0-": -5, "": None, " ": None}  # fmt: skip


@pytest.mark.parametrize("engine", ["csv", "json", "sqlite", "parquet", "frame"])
def test_how_amounts_are_spelled(world: Any, engine: str) -> None:
    """A spelling is a number as accountants read it, or the comparison is refused; it is never half of one."""
    if engine in ("csv", "sqlite"):
        for at, bad in enumerate(SIGNS):
            world.lay(engine, f"bad{at}", [("x", "7"), ("x", bad)], types=("text", "text"))
            with pytest.raises(AnalystError) as caught:
                world.total(f"bad{at}")
            assert repr(bad.strip()) in str(caught.value)
    # What holds text as it is takes turns.
    turn = ("json", "sqlite", "parquet", "frame")
    for at, (text, value) in enumerate(READ.items()):
        if engine in turn and turn.index(engine) != at % len(turn):
            continue
        world.lay(engine, f"good{at}", [("x", text)], types=("text", "text"))
        assert (text, world.total(f"good{at}")) == (text, None if value is None else D(value))
