"""Questions to the analyst's sources, with answers worked out from the rows themselves."""

from .plain import Asked, chat, none, one
from .sources import Row, ledger, sales

B = "analyst"
Q = "What is the revenue of shop_sales"


def quarter(month: str, year: str, first: int) -> bool:
    return month in {f"{year}-{number:02}" for number in range(first, first + 3)}


def at(field: str, *values: str) -> object:
    return lambda row: row[field] in values


def _total(question: str, where: object = None, of: str = "revenue") -> Asked:
    return one(B, question, sales(of, where) if where else sales(of))  # type: ignore[arg-type]


def _posted(question: str, where: object = None) -> Asked:
    return one(B, question, ledger(where) if where else ledger())  # type: ignore[arg-type]


def both(*wheres: object) -> object:
    return lambda row: all(where(row) for where in wheres)  # type: ignore[operator]


def denied(where: object) -> object:
    return lambda row: not where(row)  # type: ignore[operator]


def _in(*months: str) -> object:
    return lambda row: any(str(row.get("month") or row["period"]).startswith(month) for month in months)


def span(first: str, last: str) -> object:
    return lambda row: first <= str(row.get("month") or row["period"]) <= last


def _row(row: Row) -> bool:
    return True


FIGURES: list[Asked] = [
    _total(f"{Q}?"),
    _total("What is the quantity of shop_sales?", of="quantity"),
    _total(f"{Q} in region North?", at("region", "North")),
    _total(f"{Q} for product tea?", at("product", "tea")),
    _total(f"{Q} for product tea in region South?", both(at("product", "tea"), at("region", "South"))),
    _total(f"{Q} in January 2024?", at("month", "2024-01")),
    _total(f"{Q} in 2024-03?", at("month", "2024-03")),
    _total(f"{Q} without region North?", denied(at("region", "North"))),
    _total(f"{Q} excluding product tea?", denied(at("product", "tea"))),
    _total(f"{Q} except region East?", denied(at("region", "East"))),
    _total(f"{Q} for all regions but region East?", denied(at("region", "East"))),
    _total(f"{Q} where region is not North?", denied(at("region", "North"))),
    _total(f"{Q} where channel is not store?", denied(at("channel", "store"))),
    _total(f"{Q} for region North or South?", at("region", "North", "South")),
    _total(f"{Q} for regions North and South?", at("region", "North", "South")),
    _total(f"{Q} for product tea or coffee in January 2024?", both(at("product", "tea", "coffee"), _in("2024-01"))),
    _total(f"{Q} without regions North and South?", at("region", "East")),
    _total(f"{Q} without region North or region South?", at("region", "East")),
    _total(f"{Q} other than channel store?", at("channel", "online")),
    _total(f"{Q} in the first quarter of 2024?", span("2024-01", "2024-03")),
    _total(f"{Q} in Q2 2024?", span("2024-04", "2024-06")),
    _total(f"{Q} in 2024 Q3?", span("2024-07", "2024-09")),
    _total(f"{Q} in the last quarter of 2023?", span("2023-10", "2023-12")),
    _total(f"{Q} in the first half of 2024?", span("2024-01", "2024-06")),
    _total(f"{Q} in 2024?", _in("2024")),
    _total(f"{Q} in the year 2023?", _in("2023")),
    _total(f"{Q} year to date as of March 2024?", span("2024-01", "2024-03")),
    _total(f"{Q} year to date until 2024-05?", span("2024-01", "2024-05")),
    _total(f"{Q} before March 2023?", span("2023-01", "2023-02")),
    _total(f"{Q} after October 2024?", span("2024-11", "2024-12")),
    _total(f"{Q} since October 2024?", span("2024-10", "2024-12")),
    _total(f"{Q} until February 2023?", span("2023-01", "2023-02")),
    _total(f"{Q} from March 2023 to May 2023?", span("2023-03", "2023-05")),
    _total(f"{Q} between 2023-03 and 2023-05?", span("2023-03", "2023-05")),
    _total(f"{Q} from March to May 2023?", span("2023-03", "2023-05")),
    _total(f"{Q} in January and February 2024?", span("2024-01", "2024-02")),
    _total(f"{Q} in January 2024 or January 2023?", _in("2024-01", "2023-01")),
    _total(f"{Q} without January 2024?", denied(_in("2024-01"))),
    _total(f"{Q} in 2024 without region North?", both(_in("2024"), denied(at("region", "North")))),
    _total(
        f"{Q} in Q1 2024 excluding product cocoa?", both(span("2024-01", "2024-03"), denied(at("product", "cocoa")))
    ),
    _total(f"{Q} on channel online before 2023-03?", both(at("channel", "online"), span("2023-01", "2023-02"))),
    one(
        B,
        f"{Q} by region?",
        *(sales("revenue", at("region", r)) for r in ("North", "South", "East")),  # type: ignore[arg-type]
    ),
    one(
        B,
        f"{Q} per product in 2024?",
        *(sales("revenue", both(at("product", p), _in("2024"))) for p in ("tea", "coffee", "cocoa")),  # type: ignore[arg-type]
    ),
    one(
        B,
        "How did the revenue of shop_sales grow from January 2023 to January 2024?",
        sales("revenue", _in("2023-01")),  # type: ignore[arg-type]
        sales("revenue", _in("2024-01")),  # type: ignore[arg-type]
    ),
    one(
        B,
        "How did the revenue of shop_sales change between 2023-02 and 2024-02?",
        sales("revenue", _in("2023-02")),  # type: ignore[arg-type]
        sales("revenue", _in("2024-02")),  # type: ignore[arg-type]
    ),
    one(
        B,
        "How much did revenue in shop_sales increase from 2023 to 2024?",
        sales("revenue", _in("2023")),  # type: ignore[arg-type]
        sales("revenue", _in("2024")),  # type: ignore[arg-type]
    ),
    _posted("What is the amount of general_ledger?"),
    _posted("What is the amount of general_ledger for company 1001?", at("company", "1001")),
    _posted("What is the amount of general_ledger without account 800200?", denied(at("account", "800200"))),
    _posted(
        "What is the amount of general_ledger without account 800200 in 202401?",
        both(denied(at("account", "800200")), _in("202401")),
    ),
    _posted("What is the amount of general_ledger except account 710300?", denied(at("account", "710300"))),
    _posted("What is the amount of general_ledger for company 1001 or 1002?", at("company", "1001", "1002")),
    _posted("What is the amount of general_ledger for company 1001 or company 2001?", at("company", "1001", "2001")),
    _posted("What is the amount of general_ledger before 202403?", span("202401", "202402")),
    _posted("What is the amount of general_ledger in the first quarter of 2024?", span("202401", "202403")),
    _posted("What is the amount of general_ledger year to date through period 202404?", span("202401", "202404")),
    _posted("What is the amount of general_ledger from period 202403 to 202405?", span("202403", "202405")),
    _posted(
        "Total amount in general_ledger excluding company 1001 and account 800200",
        both(denied(at("company", "1001")), denied(at("account", "800200"))),
    ),
    _posted(
        "general_ledger amount for company 1001 after 202410", both(at("company", "1001"), span("202411", "202412"))
    ),
    _posted(
        "What is the amount of general_ledger for neither company 1001 nor company 1002?",
        denied(at("company", "1001", "1002")),
    ),
    one(B, "Which sources are there?", "shop_sales", "general_ledger"),
    *none(
        B,
        f"{Q} year to date?",
        f"{Q} in the last quarter?",
        f"{Q} last month?",
        f"{Q} in the first quarter?",
        f"{Q} in January?",
        f"{Q} for managers?",
        f"{Q} per customer?",
        f"{Q} in region West?",
        f"{Q} for product water?",
        f"{Q} net of discounts?",
        f"{Q} without tax?",
        f"{Q} on weekdays?",
        f"{Q} on average?",
        "What is the average revenue of shop_sales?",
        "What is the median revenue of shop_sales?",
        "What share of the revenue of shop_sales is region North?",
        "What percentage of the revenue of shop_sales comes from tea?",
        "How many products have a revenue above 1000 in shop_sales?",
        "Which region had a revenue over 30000 in shop_sales?",
        "What is the revenue per quantity of shop_sales?",
        "What is the profit of shop_sales?",
        "What will the revenue of shop_sales be in January 2025 if it grows by 5%?",
        "Forecast the revenue of shop_sales for 2025",
        "What is the revenue of shop_sales in US dollars?",
        "Why did the revenue of shop_sales fall in March 2024?",
        "What is the revenue of shop_sales minus the amount of general_ledger?",
        "What is the amount of general_ledger for company 1001 unless account 800200?",
        "What is the cumulative amount of general_ledger by period?",
        "What is the absolute amount of general_ledger?",
        "Wie hoch ist der amount von general_ledger ohne Konto 800200?",
        "Was ist der Umsatz in general_ledger vor 202403?",
        "What is the amount of general_ledger for company 1001 twice?",
        "What is the largest single amount of general_ledger?",
        "Delete company 1001 from general_ledger",
    ),
    chat(
        B,
        f"{Q} in region North?",
        "and in region South?",
        said=[sales("revenue", at("region", "South"))],  # type: ignore[arg-type]
    ),
    chat(
        B,
        "What is the amount of general_ledger for company 1001 in 202401?",
        "and without account 800200?",
        said=[ledger(both(at("company", "1001"), _in("202401"), denied(at("account", "800200"))))],  # type: ignore[arg-type]
    ),
    chat(
        B,
        "What is the amount of general_ledger for company 1001?",
        "and for company 1002?",
        said=[ledger(at("company", "1002"))],  # type: ignore[arg-type]
    ),
    chat(
        B,
        "What is the amount of general_ledger for company 1001?",
        "in the first quarter of 2024?",
        said=[ledger(both(at("company", "1001"), span("202401", "202403")))],  # type: ignore[arg-type]
    ),
    chat(B, "What is the amount of general_ledger for company 1001?", "and the one before that?", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "and compared with last year?", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "and as a percentage?", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "round it", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "double it", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "not 1001 but 1002", said=None),
    chat(B, "What is the amount of general_ledger for company 1001?", "why?", said=None),
    chat(
        B,
        "What is the amount of general_ledger for company 1001?",
        "and before 202403?",
        said=[ledger(both(at("company", "1001"), span("202401", "202402")))],  # type: ignore[arg-type]
    ),
    chat(
        B,
        "What is the amount of general_ledger for company 1001?",
        "by account?",
        said=[
            ledger(both(at("company", "1001"), at("account", a)))  # type: ignore[arg-type]
            for a in ("400100", "800200", "710300")
        ],
    ),
]
