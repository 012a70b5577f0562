"""A filter on a group of a hierarchy: the same figures on every engine, and databases are told what is below it."""

from decimal import Decimal
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.analyst import Catalog, Dimension, Filter, Hierarchy, QueryRequest, parse_format, query
from treadle.analyst.declared.filters import Under
from treadle.analyst.reading.dialect import Column, Dialect
from treadle.analyst.reading.keys import Key
from treadle.analyst.remote.narrowing import narrowing
from treadle.analyst.sql.parameters import Parameters

pytestmark = pytest.mark.usefixtures("one_engine")

ENGINES = ["csv", "json", "sqlite", "parquet", "duckdb", "postgres", "alchemy-postgres"]
DATABASES = ["postgres", "alchemy-postgres"]
TEXTS = [("8000", "1.00"), ("0000008000", "2.00"), ("8500", "4.00"), ("Revenue", "8.00"), ("4000", "16.00"),
         (None, "32.00"), ("9000", "64.00"), (" 4000 ", "128.00"), ("x'; --", "256.00")]  # fmt: skip
GROUPS = {
    "listed": {"Result": ("Revenue", "Costs"), "Revenue": ("8000", "8500"), "Costs": ("4000", "x'; --")},
    "ranges": {"Result": ("Revenue", "4000"), "Revenue": ("8000..8999",)},
}


def total(world: Any, tree: str, group: str) -> tuple[Decimal | None, str]:
    """The total under a group, and what a database was asked for."""
    hierarchy = Hierarchy(name=tree, of="key", groups=GROUPS[tree])
    catalog = Catalog(list(world.sources.values()), world.folder, frames=world.frames, hierarchies=[hierarchy])
    found = query(catalog, QueryRequest(source="a", filters=[Filter(dimension="key", op="under", value=group)]))
    asked = [one.text for one in found.made if one.text.startswith("-- asked of the database")]
    return found.totals["amount"], "".join(asked)


@pytest.mark.parametrize("form", ["", "alpha(10)", "trim"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_under_a_group_is_the_same_everywhere(world: Any, engine: str, form: str) -> None:
    world.lay(engine, "a", TEXTS, formats={"key": form})
    spelled = {text: (text or "").strip() if form else text or "" for text, _ in TEXTS}
    spelled = {text: word.lstrip("0") if form == "alpha(10)" else word for text, word in spelled.items()}
    for group, names in (("Revenue", {"8000", "8500", "Revenue"}), ("Costs", {"4000", "x'; --", "Costs"})):
        expected = sum((Decimal(amount) for text, amount in TEXTS if text and spelled[text] in names), Decimal(0))
        found, asked = total(world, "listed", group)
        assert found == expected
        if engine in DATABASES:
            assert ("8500" if group == "Revenue" else "4000") in asked.partition("WHERE")[2]


@pytest.mark.parametrize("tree", ["listed", "ranges"])
@pytest.mark.parametrize("engine", ["csv", "duckdb", "postgres", "alchemy-postgres"])
def test_of_whole_numbers_it_is_the_same_everywhere(world: Any, engine: str, tree: str) -> None:
    rows = [(8000, "1.00"), (8500, "2.00"), (8999, "4.00"), (4000, "8.00"), (9000, "16.00"), (None, "32.00")]
    world.lay(engine, "a", rows, types=("integer", "decimal"), key_types={"key": "integer"})
    expected = {"listed": {"Revenue": "3.00", "Result": "11.00"}, "ranges": {"Revenue": "7.00", "Result": "15.00"}}
    for group, amount in expected[tree].items():
        found, asked = total(world, tree, group)
        assert found == Decimal(amount)
        if engine in DATABASES:
            assert "WHERE" in asked


def test_a_group_of_too_many_names_is_not_told(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.analyst.remote.narrowing._MOST_BELOW", 2)
    world.lay("postgres", "a", TEXTS)
    assert total(world, "listed", "Revenue")[0] == Decimal("13.00")


@settings(max_examples=deep(60), deadline=None)
@given(
    number=st.integers(-20, 20),
    names=st.lists(st.integers(-20, 20).map(str) | st.sampled_from(["Revenue", "007", "1.0", " 5"]), max_size=4),
    ranges=st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=2),
)
def test_no_whole_number_below_a_group_is_lost(number: int, names: list[str], ranges: list[tuple[int, int]]) -> None:
    import duckdb
    from sqlglot import exp

    key = Key("x", (Dimension(name="x", type="integer", format=parse_format("")),), "integer")
    ends = tuple((str(low), str(high)) for low, high in ranges)
    condition = Under(dimension="x", op="under", value="g", names=tuple(names), ranges=ends)
    parameters = Parameters()
    found = narrowing(Dialect("postgres"), key, "x", Column("integer", 0), condition, parameters)
    assert found is not None
    rows = exp.select(exp.alias_(exp.cast(parameters.add(number), "BIGINT"), "x")).subquery("t")
    statement = exp.select("1").from_(rows).where(found.condition).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        passed = bool(connection.execute(statement, parameters.values).fetchall())
    meant = str(number) in names or any(low <= number <= high for low, high in ranges)
    assert passed or not meant
    assert not found.exact
