"""Measures by expression and what they come to: a table of them, and generated ones with what Python makes of each."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from hypothesis import strategies as st

from treadle.analyst import Dimension, Measure, QueryRequest, QueryResult, Source


class Formulas:
    """Measures by expression over one small table, and their figures as decimals make them."""

    types = {
        "company": "VARCHAR", "dc": "VARCHAR", "quantity": "INTEGER", "unit_price": "DECIMAL(18,2)",
        "debit": "DECIMAL(18,2)", "credit": "DECIMAL(18,2)", "amount": "DECIMAL(18,3)",
    }  # fmt: skip
    rows = [
        ("1", "H", "2", "1.25", "100.00", None, "10.005"),
        ("1", "S", "3", "2.40", None, "40.50", "-20.105"),
        ("2", "h", "-1", "0.01", "0.00", "0.01", "7.000"),
        ("2", None, None, "9.99", "5.00", "5.00", None),
        ("2", "H ", "1000000", "12345678901.23", "0.00", "0.00", "0.001"),
    ]
    # By expression, the figure of company 1 and that of company 2.
    figures = {
        "quantity * unit_price": ("9.70", "12345678901229999.99"),
        "debit - credit": (None, "-0.01"),
        "coalesce(debit, 0) - coalesce(credit, 0)": ("59.50", "-0.01"),
        "abs(amount)": ("30.110", "7.001"),
        "-amount": ("10.100", "-7.001"),
        "if(dc = 'H', -amount, amount)": ("-30.110", "7.001"),
        "case when dc = 'H' then -amount when dc = 'S' then amount else 0 end": ("-30.110", "0"),
        "case dc when 'H' then 1 when 'S' then 2 end": ("3", None),
        "if(dc in ('H', 'h'), 1, null)": ("1", "1"),
        "if(dc != 'H', 1, 0)": ("1", "3"),
        "if(not (dc = 'H' or quantity > 2), 1, 0)": ("0", "2"),
        "if(dc is null and quantity is null, unit_price, 0)": ("0", "9.99"),
        "if(dc is not null, 1, 0)": ("2", "2"),
        "if(dc >= 'S' and dc < 'h', 1, 0)": ("1", "0"),
        "if(-1 >= quantity, 10, 0.5)": ("1.0", "11.0"),
        "if(quantity not in (2, 3), 1, 0)": ("0", "3"),
        "if(unit_price <= 1.25, unit_price, 0)": ("1.25", "0.01"),
        "round(amount, 2)": ("-10.10", "7.00"),
        "round(amount)": ("-10", "7"),
        "round(amount * 0.001, 5) * 1000": ("-10.10", "7.00"),
        "coalesce(amount, debit, 0) * 2": ("-20.200", "24.002"),
        "quantity * unit_price * amount": ("-119.7435", "12345678901229.93"),
        "(debit + 1) * (credit - 1)": (None, "22.01"),
        "amount * -1.5 + 0.25": ("15.650", "-10.0015"),
    }  # fmt: skip

    def source(self, kind: Any, measures: dict[str, str] | None = None, **place: Any) -> Source:
        named = measures or {f"m{at}": text for at, text in enumerate(self.figures)}
        database = {"table": "t", "dsn_env": "TREADLE_TEST_URL"}
        where = {"sqlalchemy": database, "frame": {}, "postgres": {}}.get(kind, {"path": "t"})
        where |= {"table": "t"} if kind in ("sqlite", "duckdb") else {}
        return Source(
            name="t", kind=kind, dimensions=(Dimension(name="company"),), **(where | place),
            measures=tuple(Measure(name=name, expression=text) for name, text in named.items()),
        )  # fmt: skip

    request = QueryRequest(source="t", dimensions=["company"])

    def confirm(self, found: QueryResult, places: int | None = None) -> None:
        def shown(value: Any) -> Decimal | None:
            return value if value is None or places is None else round(Decimal(value), places)

        told = {text: tuple(shown(row[f"m{at}"]) for row in found.rows) for at, text in enumerate(self.figures)}
        expected = {
            text: tuple(None if value is None else Decimal(value) for value in pair)
            for text, pair in self.figures.items()
        }
        if places is not None:
            # Fifteen digits are what a floating-point number holds.
            large = [text for text, pair in expected.items() if any(abs(value or 0) > 10**6 for value in pair)]
            for text in large:
                assert all(
                    value == wanted or abs(value / wanted - 1) < Decimal("1e-14")
                    for value, wanted in zip(told.pop(text), expected.pop(text), strict=True)
                )
        assert told == expected

    def property(self, data: Any, ask: Callable[[Any, dict[str, str]], QueryResult]) -> None:
        """Any expression over any rows is what Python's decimals make of it."""
        rows = data.draw(st.lists(_ROWS, max_size=4))
        drawn = data.draw(st.lists(_terms(), min_size=1, max_size=4))
        if not (drawn := [(text, term) for text, term in drawn if any(name in text for name in self.types)]):
            return
        result = ask(rows, {f"m{at}": text for at, (text, _) in enumerate(drawn)})
        for at, (text, term) in enumerate(drawn):
            values = [term(dict(zip(self.types, row, strict=True))) for row in rows]
            filled = [value for value in values if value is not None]
            with localcontext(prec=120):
                assert result.totals[f"m{at}"] == (sum(filled, Decimal(0)) if filled else None), text


_CELLS = st.none() | st.decimals(-(10**6), 10**6, places=2).map(lambda value: format(value, "f"))
_ROWS = st.tuples(
    st.sampled_from(["1", "2"]), st.none() | st.sampled_from(["H", "S", "h", "it's"]),
    st.none() | st.integers(-1000, 1000).map(str), _CELLS, _CELLS, _CELLS, _CELLS,
)  # fmt: skip
Term = tuple[str, Callable[[dict[str, Any]], Decimal | None]]


def _terms() -> st.SearchStrategy[Term]:
    """Expressions as they are written, each with what Python makes of it: nothing of treadle is in them."""

    def column(name: str) -> Term:
        return name, lambda row: None if row[name] is None else Decimal(row[name])

    def two(op: str, a: Term, b: Term) -> Term:
        work = {"+": Decimal.__add__, "-": Decimal.__sub__, "*": Decimal.__mul__}[op]

        def value(row: dict[str, Any]) -> Decimal | None:
            left, right = a[1](row), b[1](row)
            with localcontext(prec=120):
                return None if left is None or right is None else work(left, right)

        return f"({a[0]} {op} {b[0]})", value

    def one(name: str, a: Term, places: int) -> Term:
        def value(row: dict[str, Any]) -> Decimal | None:
            found = a[1](row)
            with localcontext(prec=120):
                if found is None or name == "abs":
                    return found and abs(found)
                return -found if name == "-" else found.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

        return (f"round({a[0]}, {places})" if name == "round" else f"{name}({a[0]})"), value

    def filled(a: Term, b: Term) -> Term:
        def value(row: dict[str, Any]) -> Decimal | None:
            found = a[1](row)
            return b[1](row) if found is None else found

        return f"coalesce({a[0]}, {b[0]})", value

    def choice(test: tuple[str, Callable[[dict[str, Any]], bool]], a: Term, b: Term) -> Term:
        return f"if({test[0]}, {a[0]}, {b[0]})", lambda row: a[1](row) if test[1](row) else b[1](row)

    leaves = st.sampled_from([column(name) for name in ("quantity", "unit_price", "debit", "credit", "amount")])
    leaves |= st.sampled_from(["0", "1", "2.5", "0.01"]).map(lambda text: (text, lambda row: Decimal(text)))
    small = leaves | st.builds(two, st.sampled_from("+-*"), leaves, leaves)
    terms = small | st.builds(one, st.sampled_from(["abs", "-", "round"]), small, st.integers(0, 3))
    terms |= st.builds(filled, small, small) | st.builds(choice, _tests(), small, small)
    return terms | st.builds(two, st.sampled_from("+-"), terms, terms) | st.builds(choice, _tests(), terms, terms)


def _tests() -> st.SearchStrategy[tuple[str, Callable[[dict[str, Any]], bool]]]:
    texts = st.sampled_from(["H", "S", "it's", ""])

    def spelled(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    found: Any = st.sampled_from([("dc is null", lambda row: row["dc"] is None)])
    found |= texts.map(lambda text: (f"dc = {spelled(text)}", lambda row: row["dc"] == text))
    found |= texts.map(lambda text: (f"dc <> {spelled(text)}", lambda row: row["dc"] != text))
    found |= texts.map(
        lambda text: (f"dc < {spelled(text)}", lambda row: row["dc"] is not None and row["dc"].encode() < text.encode())
    )
    found |= st.sampled_from(
        [("quantity > 2", lambda row: row["quantity"] is not None and Decimal(row["quantity"]) > 2),
         ("not quantity > 2", lambda row: row["quantity"] is None or Decimal(row["quantity"]) <= 2),
         ("amount in (0, 2.5)", lambda row: row["amount"] and Decimal(row["amount"]) in (0, Decimal("2.5")))]
    )  # fmt: skip
    return found | st.tuples(st.sampled_from(["and", "or"]), found, found).map(
        lambda three: (
            f"({three[1][0]} {three[0]} {three[2][0]})",
            lambda row: (all if three[0] == "and" else any)([three[1][1](row), three[2][1](row)]),
        )
    )
