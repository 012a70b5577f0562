"""Keys: in every engine two rows meet where their keys are the same value, and nowhere else."""

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from treadle.analyst import AnalystError, Dimension

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
FILES = ("csv", "json", "sqlite", "parquet", "duckdb", "frame")
BASES = ("postgres", "alchemy-postgres", "alchemy-sqlite")
ALL = (*FILES, *BASES)

NFC, NFD = "\u00e9", "e\u0301"
APART: dict[str, list[Any]] = {
    "NULL, empty, blank and initial": [None, "", " ", "0", "0000000000", "00000000", "#", "NULL", "None", "(none)"],
    "case": ["a", "A", "\u00df", "SS", "ss", "\u0131", "i", "I", "\u0130"],
    "normal forms": [NFC, NFD, "\ufb01", "fi", "\u212b", "\u00c5"],
    "blanks": ["x", "x ", " x", "x\u00a0", "x\t", "x\u200b", "x\u3000", "x\u202f"],
    "separators": ["a|b", "a,b", "a;b", "a\tb", "a\x1fb", 'a"b', "a'b", "a\nb", "a\r\nb", "a\\b", "a\x01b"],
    "numbers as text": ["1", "01", "1.0", "1.00", "+1", "1e0", "-1", "-01"],
    "hostile": ["'; DROP TABLE a; --", '" OR 1=1', "?", "$1", ":p0", "%(p0)s", "%s", "{}", "/* */", "--", "\\",
                "x" * 65_536],
    "other scripts": ["\u0661", "1", "\u03c3", "\u03c2", "\u212a", "k", "\U0001f600", "\u202e1"],
}  # fmt: skip


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("trap", APART)
def test_what_differs_stays_apart(world: Any, trap: str, engine: str) -> None:
    """In groups, and in the filter on each of them, for which files, whose text is all alike by then, take turns."""
    keys = APART[trap]
    world.lay(engine, "a", [(key, 2**at) for at, key in enumerate(keys)], types=("text", "integer"))
    assert world.by_key() == {key: D(2**at) for at, key in enumerate(keys)}
    for at, key in enumerate(keys):
        if engine in FILES and FILES.index(engine) != at % len(FILES):
            continue
        if key is not None and key != "\x01":
            assert (key, world.total(filters={"key": key})) == (key, D(2**at))


COLLATED = [
    *(("duckdb", f"VARCHAR COLLATE {name}") for name in ("NOCASE", "NOACCENT", "de")),
    *((engine, f"TEXT COLLATE {name}") for engine in ("sqlite", "alchemy-sqlite") for name in ("NOCASE", "RTRIM")),
    *(
        (engine, f"text COLLATE {name}")
        for engine in ("postgres", "alchemy-postgres")
        for name in ("no_case", '"en-x-icu"')
    ),
]
NO_CASE = "CREATE COLLATION IF NOT EXISTS no_case (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"


@pytest.mark.parametrize(("engine", "kind"), COLLATED)
def test_a_collation_neither_merges_nor_reorders(world: Any, engine: str, kind: str) -> None:
    """In groups, in every filter, and in the order of ties."""
    if "no_case" in kind:
        world.server.execute(NO_CASE)
    keys = ["B", "a", "A", "\u00e4", "a ", "b", "a-b", "ab"]
    rows = [(key, 2**at) for at, key in enumerate(keys)]
    world.lay(engine, "a", rows, types=(kind, "integer"))
    assert world.by_key() == {key: D(2**at) for at, key in enumerate(keys)}
    tests: list[tuple[str, Any, Any]] = [
        ("=", "a", lambda key: key == "a"), ("!=", "a", lambda key: key != "a"),
        ("in", ["a", "b"], lambda key: key in ("a", "b")), ("not in", ["A"], lambda key: key != "A"),
        ("<", "a", lambda key: key < "a"), (">=", "a ", lambda key: key >= "a "),
        ("between", ["A", "a"], lambda key: "A" <= key <= "a"), ("like", "a%", lambda key: key.startswith("a")),
    ]  # fmt: skip
    for op, value, passes in tests:
        found = world.total(filters=[{"dimension": "key", "op": op, "value": value}]) or 0
        assert (op, found) == (op, sum(amount for key, amount in rows if passes(key)))
    assert [row["key"] for row in world.ask(dimensions=["key"]).rows] == sorted(keys)
    world.lay(engine, "b", [(key, amount + 9) for key, amount in rows], types=(kind, "integer"))
    assert [row.key["key"] for row in world.confront().top_differences] == sorted(keys)


@pytest.mark.parametrize("form", ["trim", "alpha(4)", "blank_as_null", "fiscal_period", "upper"])
@pytest.mark.parametrize("engine", ["postgres", "alchemy-postgres", "duckdb", "alchemy-sqlite"])
def test_a_format_on_a_column_with_a_collation(world: Any, engine: str, form: str) -> None:
    kind = {"duckdb": "VARCHAR COLLATE NOCASE", "alchemy-sqlite": "TEXT COLLATE NOCASE"}.get(engine)
    if kind is None:
        world.server.execute(NO_CASE)
        kind = "text COLLATE no_case"
    world.lay(engine, "a", [("A1", 1), ("a1", 2), ("202401", 4)], types=(kind, "integer"), formats={"key": form})
    assert world.total(filters={"key": "A1"}) == (3 if form == "upper" else 1)
    world.lay(engine, "a", [("A", 1), ("a", 2), ("202401", 4)], types=(kind, "integer"), formats={"key": form})
    between = {"dimension": "key", "op": "between", "value": ["202401", "202402"]}
    assert world.total(filters=[between]) == 4


@pytest.mark.parametrize("engine", ALL)
def test_composite_keys_do_not_run_together(world: Any, engine: str) -> None:
    pairs = [
        ("a|b", "c"), ("a", "b|c"), ("a,", "b"), ("a", ",b"), (None, "x"), ("x", None), ("", "x"), ("x", ""),
        (None, None), ("1", "11"), ("11", "1"),
    ]  # fmt: skip
    rows = [(*pair, 2**at) for at, pair in enumerate(pairs)]
    for name in ("a", "b"):
        world.lay(engine, name, rows[:: 1 if name == "a" else -1], columns=("key", "other", "amount"),
                  types=("text", "text", "integer"))  # fmt: skip
    found = world.confront(dimensions=["key", "other"])
    assert {(row.key["key"], row.key["other"]): row.source_b_value for row in found.rows} == {
        pair: D(2**at) for at, pair in enumerate(pairs)
    }
    assert found.summary.matches == len(pairs)


@pytest.mark.parametrize("engine", [engine for engine in ALL if engine != "csv"])
def test_whole_numbers_meet_text_whatever_holds_them(world: Any, engine: str) -> None:
    """1001 as an integer, a float or a decimal is the text 1001, and -0.0 is 0."""
    world.lay("csv", "b", [("1001", 1), ("0", 2), ("-5", 4)], types=("text", "integer"))
    for kind, zero in (("integer", 0), ("float", "-0.0")):
        world.lay(engine, "a", [("1001", 1), (zero, 2), ("-5", 4)], types=(kind, "integer"))
        assert world.confront().summary.matches == 3
        assert world.total(filters={"key": 1001}) == 1


@pytest.mark.parametrize("engine", ["csv", "json", "sqlite", "duckdb", "parquet", "frame"])
@pytest.mark.parametrize(
    ("declared", "held", "told"),
    [
        ("integer", ["1.6", "2.4"], "not what its column is declared to be"),
        ("decimal", ["1.12345678901", "1.12345678902"], "too many digits|not what its column is declared to be"),
    ],
)
def test_a_declared_type_rounds_no_key(world: Any, engine: str, declared: str, held: list[str], told: str) -> None:
    for kind in ("text", "float"):
        world.lay(engine, "a", [(key, 1) for key in held], types=(kind, "integer"), key_types={"key": declared})
        with pytest.raises(AnalystError, match=told):
            world.by_key()
    world.lay(engine, "a", [("7.0", 1), (" 7 ", 2), (None, 4)], types=("text", "integer"), key_types={"key": declared})
    assert world.by_key() == {7: D(3), None: D(4)}
    if declared == "decimal":
        with pytest.raises(AnalystError, match="is not a value of dimension 'key'"):
            world.total(filters={"key": "7.00000000001"})


def test_alpha_orders_what_is_longer_than_the_field_whole(world: Any) -> None:
    """Padding to the field's length would cut it off, so that it passed a filter that it must not pass."""
    rows = [("1001000000", 1), ("99999999999999", 2), ("1001", 4), ("0000000999", 8)]
    world.lay("csv", "a", rows, types=("text", "integer"), formats={"key": "alpha(10)"})
    assert world.total(filters=[{"dimension": "key", "op": "<=", "value": "9999999999"}]) == 13
    assert world.total(filters=[{"dimension": "key", "op": "between", "value": ["999", "1001"]}]) == 12


@pytest.mark.parametrize("engine", ["postgres", "alchemy-postgres", "json", "csv", "parquet", "frame"])
def test_columns_that_differ_in_case_only_are_not_mixed_up(world: Any, engine: str) -> None:
    columns, types = ("key", "other", "amount"), ("text", "text", "integer")
    world.lay(engine, "a", [("x", "y", 1)], columns=columns, types=types)
    table = pyarrow.table([["x"], ["y"], [1]], names=["key", "Key", "amount"])
    file = world.folder / f"a.{engine}"
    match engine:
        case "parquet":
            parquet.write_table(table, file)
        case "frame":
            world.frames["a"] = table
        case "json" | "csv":
            file.write_text(file.read_text().replace("other", "Key"))
        case _:
            name = world.sources["a"].table.partition(".")[2]
            world.server.execute(f'ALTER TABLE "{name}" RENAME COLUMN "other" TO "Key"')
    world.change("a", dimensions=(Dimension(name="key"), Dimension(name="other", column="Key")))
    with pytest.raises(AnalystError, match=r"differ only in case|those of one name are counted"):
        world.ask(dimensions=["key", "other"])


@pytest.mark.parametrize(
    ("first", "second"),
    [("BIGINT", "DOUBLE"), ("DECIMAL(18,2)", "DECIMAL(18,4)"), ("DOUBLE", "DECIMAL(18,2)"), ("BIGINT", "VARCHAR")],
)
@pytest.mark.parametrize("column", ["key", "amount"])
def test_files_of_one_source_have_columns_of_one_type(world: Any, column: str, first: str, second: str) -> None:
    """The engine would take the first file's type for all, and round what the others hold."""
    world.lay("parquet", "a", [])
    for at, kind in enumerate((first, second)):
        held = {"key": "'7'", "amount": "1"} | {column: f"'1{'.25' if at and kind != 'VARCHAR' else ''}'::{kind}"}
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT {held['key']} AS key, {held['amount']} AS amount) TO '{world.folder}/p{at}.parquet'"
            )
    world.change("a", path="p*.parquet")
    with pytest.raises(AnalystError, match=r"is .* in p0\.parquet and .* in p1\.parquet"):
        world.by_key()


def test_whole_numbers_of_several_widths_are_added_up(world: Any) -> None:
    world.lay("parquet", "a", [])
    for at, kind in enumerate(("INTEGER", "BIGINT", "SMALLINT")):
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT '7' AS key, 5::{kind} AS amount) TO '{world.folder}/p{at}.parquet'")
    world.change("a", path="p*.parquet")
    assert world.by_key() == {"7": D(15)}


def test_a_name_twice_in_an_object_is_refused(world: Any) -> None:
    world.lay("json", "a", [("x", 1)], types=("text", "integer"))
    (world.folder / "a.json").write_text('[{"key": "x", "amount": 1, "amount": 2}]')
    with pytest.raises(AnalystError, match="'amount' stands twice in one object"):
        world.total()


@pytest.mark.parametrize("header", ["key,amount,", ",key,amount"])
def test_a_column_without_a_name_is_left_alone(world: Any, header: str) -> None:
    """pandas writes its index so, SAP ends every line with a separator."""
    world.lay("csv", "a", [])
    row = "x,5," if header.endswith(",") else "0,x,5"
    (world.folder / "a.csv").write_text(f"{header}\n{row}\n")
    assert world.by_key() == {"x": D(5)}
