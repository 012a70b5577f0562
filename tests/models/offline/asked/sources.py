"""The analyst's sources that the planner is asked about, and their figures worked out in plain Python."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path

from treadle.analyst import Catalog

REGIONS, PRODUCTS, CHANNELS = ("North", "South", "East"), ("tea", "coffee", "cocoa"), ("online", "store")
MONTHS = [f"{year}-{month:02}" for year in (2023, 2024) for month in range(1, 13)]

Row = dict[str, str | Decimal]


def _sales() -> Iterable[Row]:
    for i, region in enumerate(REGIONS):
        for j, product in enumerate(PRODUCTS):
            for k, month in enumerate(MONTHS):
                channel = CHANNELS[(i + j + k) % 2]
                revenue = Decimal(1000 + 137 * i + 61 * j + 17 * k + (i * j * k) % 7) + Decimal(3 * k + j) / 100
                yield {
                    "region": region,
                    "product": product,
                    "month": month,
                    "channel": channel,
                    "revenue": revenue,
                    "quantity": Decimal(10 + 3 * i + 2 * j + k),
                }


ROWS = list(_sales())
LEDGER: list[Row] = [
    {"company": company, "account": account, "period": f"{month[:4]}{month[5:]}", "amount": row}
    for i, company in enumerate(("1001", "1002", "2001"))
    for j, account in enumerate(("400100", "800200", "710300"))
    for k, month in enumerate(MONTHS[12:])
    if (row := Decimal((j + 1) * 1000 + 100 * i + 10 * k) + Decimal(i + j + k) / 100)
]


def sales(of: str, where: Callable[[Row], bool] = lambda row: True) -> str:
    """The total of a measure of `shop_sales`."""
    return str(sum(Decimal(row[of]) for row in ROWS if where(row)))


def ledger(where: Callable[[Row], bool] = lambda row: True) -> str:
    """The total amount of `general_ledger`."""
    return str(sum(Decimal(row["amount"]) for row in LEDGER if where(row)))


_DECLARED = """\
sources:
  shop_sales:
    description: What the shops sold.
    kind: csv
    path: shop_sales.csv
    dimensions:
      region: {}
      product: {}
      month: {description: "Month as YYYY-MM, such as 2024-01."}
      channel: {}
    measures:
      revenue: {aggregation: sum, unit: EUR, decimals: 2}
      quantity: {aggregation: sum, synonyms: [pieces]}
  general_ledger:
    description: The general ledger.
    kind: csv
    path: general_ledger.csv
    dimensions:
      company: {synonyms: [company code]}
      account: {}
      period: {description: "Period as YYYYMM, such as 202401."}
    measures:
      amount: {aggregation: sum, unit: EUR, decimals: 2}
"""


def make_catalog(folder: Path) -> Catalog:
    """Writes both sources to `folder`."""
    for name, rows in (("shop_sales", ROWS), ("general_ledger", LEDGER)):
        lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sources.yaml").write_text(_DECLARED, encoding="utf-8")
    return Catalog.load(folder / "sources.yaml")
