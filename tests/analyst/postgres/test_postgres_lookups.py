"""Keys are mapped and amounts converted alike whether PostgreSQL or a file has them."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.analyst import AnalystError, Bounds, Catalog, CompareRequest, QueryRequest, Source, compare, query
from treadle.analyst.declared.source import Conversion, Mapping

BOOKS = [
    ("100", "202401", "EUR", "10.00"),
    ("100", "202401", "USD", "20.00"),
    ("200", "202402", "USD", "7.00"),
    ("100", "202401", "USD", "1.00"),
]
COLUMNS = ("account", "period", "currency", "amount")


def test_mapped_and_converted_in_a_database(table: Callable[..., Source], tmp_path: Path) -> None:
    conversion = Conversion(to="EUR", source="rates", currency="currency", rate="rate", on=("period",))
    books = table("books", BOOKS, columns=COLUMNS, currency="currency", conversion=conversion)
    mapping = Mapping(source="map", old="old", new="new", share="amount")
    account, *others = books.dimensions
    books = replace(books, dimensions=(replace(account, mapping=mapping), *others))
    shares = [("100", "A", "0.25"), ("100", "B", "0.75"), ("200", "A", "1")]
    kinds = ("text", "text", "numeric(9,4)")
    maps = table("map", shares, columns=("old", "new", "amount"), types=kinds)
    dated = [("USD", "202401", "0.9"), ("USD", "202402", "0.85")]
    rates = table("rates", dated, columns=("currency", "period", "amount"), types=kinds)
    rates = replace(rates, measures=(replace(rates.measures[0], name="rate"),))
    catalog = Catalog([books, maps, rates], tmp_path)
    bounds = Bounds(threads=1, seconds=60)
    found = query(catalog, QueryRequest(source="books", dimensions=["account"]), bounds=bounds)
    # (10 + 21 * 0.9) * 0.25 + 7 * 0.85 and (10 + 21 * 0.9) * 0.75
    assert {row["account"]: row["amount"] for row in found.rows} == {"A": Decimal("13.175"), "B": Decimal("21.675")}
    one = query(catalog, QueryRequest(source="books", filters={"account": "B"}), bounds=bounds)
    assert one.totals == {"amount": Decimal("21.675")}
    same = compare(catalog, CompareRequest(source_a="books", source_b="books", dimensions=["account"]), bounds=bounds)
    assert (same.summary.matches, same.summary.total_rows, same.unit) == (2, 2, "EUR")
    bad = table("more", [*BOOKS, ("999", "202401", "EUR", "1.00")], columns=COLUMNS, currency="currency")
    more = Catalog([replace(bad, dimensions=books.dimensions), maps, rates], tmp_path)
    with pytest.raises(AnalystError, match="there is nothing for 999"):
        query(more, QueryRequest(source="more", dimensions=["account"]), bounds=bounds)
