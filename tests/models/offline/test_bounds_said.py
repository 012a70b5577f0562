"""Bounds: whether the day, the year or the figure that is said is within what a tool is asked for."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

BOOKS = [("Emma", 1815), ("Persuasion", 1817), ("The Trial", 1925), ("Solaris", 1961)]
ORDERS = {7: "2026-10-09", 8: "2026-10-10", 9: "2026-11-05", 10: "2026-11-06"}


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("Which orders were placed between 2026-10-10 and 2026-11-05?", {8, 9}),
        ("Which orders were placed after 2026-10-10?", {9, 10}),
        ("Which orders were placed before 2026-11-05?", {7, 8}),
        ("Which orders were placed on 2026-11-05?", {9}),
        ("Which orders were placed since 2026-11-05?", {9, 10}),
        ("Which orders were placed until 2026-10-10?", {7, 8}),
    ],
)
@pytest.mark.parametrize("inclusive", [True, False])
def test_whether_a_bound_is_within_its_range_is_as_the_tool_says(
    question: str, numbers: set[int], inclusive: bool
) -> None:
    def list_orders(placed_after: str | None = None, placed_before: str | None = None) -> list[dict[str, Any]]:
        low, high = placed_after or "", placed_before or "9"
        days = ORDERS.items()
        within = [(n, day) for n, day in days if (low <= day <= high if inclusive else low < day < high)]
        return [{"number": n, "placed": day} for n, day in within]

    on = "on or " if inclusive else ""
    list_orders.__doc__ = f"""Lists orders.

    Args:
        placed_after: Only orders placed {on}after this day (YYYY-MM-DD).
        placed_before: Only orders placed {on}before this day (YYYY-MM-DD).
    """
    text = asked(question, tool(list_orders)).text
    assert {n for n in ORDERS if f"number {n}," in text} == numbers, text


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("Which books were published before 1817?", {"Emma"}),
        ("Which books were published after 1817?", {"The Trial", "Solaris"}),
        ("Which books were published since 1925?", {"The Trial", "Solaris"}),
        ("Which books were published in 1925?", {"The Trial"}),
        ("Which books were published between 1817 and 1925?", {"Persuasion", "The Trial"}),
    ],
)
def test_years_told_as_numbers_bound_what_was_asked(question: str, titles: set[str]) -> None:
    @tool
    def find_books(published_before: int | None = None, published_after: int | None = None) -> list[dict[str, Any]]:
        """Finds books in the catalogue.

        Args:
            published_before: Only books of years before this one.
            published_after: Only books of years after this one.
        """
        low, high = published_after or 0, published_before or 9999
        return [{"title": title, "year": year} for title, year in BOOKS if low < year < high]

    text = asked(question, find_books).text
    assert {title for title, _ in BOOKS if f"- {title}:" in text} == titles, text


@pytest.mark.parametrize(("words", "names"), [("less than 34%", {"cellar"}), ("at most 34%", {"attic", "cellar"})])
def test_a_bound_in_percent(words: str, names: set[str]) -> None:
    @tool
    def list_sensors(battery_below: int | None = None) -> list[dict[str, Any]]:
        """Lists the sensors with their battery in percent.

        Args:
            battery_below: Only sensors with less battery than this, in percent.
        """
        held = {"boiler": 88, "attic": 34, "cellar": 12}
        return [{"sensor": name, "battery": value} for name, value in held.items() if value < (battery_below or 101)]

    text = asked(f"Which sensors have {words} battery?", list_sensors).text
    assert {name for name in ("boiler", "attic", "cellar") if f"sensor {name}," in text} == names, text
