"""Over generated records, with holes and words that are more than one thing, a figure is right or there is none."""

import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, tool

from .asked.judge import DECLINED

TEXTS = {
    "status": ["open", "closed", "shipped", "on hold", "new"],
    "city": ["Berlin", "Paris", "IT", "US", "Rome"],
    "category": ["kitchen", "price", "stock", "total", "living room"],
    "owner": ["Ana", "Bo", "May", "Will", "Total"],
    "region": ["us", "eu", "in", "on"],
}
NUMBERS = ["price", "stock", "total", "weight_kg", "hours"]
BOUNDS: dict[str, Callable[[Decimal, int], bool]] = {
    "more than": lambda value, bound: value > bound,
    "at most": lambda value, bound: value <= bound,
    "less than": lambda value, bound: value < bound,
}
TWICE = {"total"}
"""Said of a record it is more than one word in a question for a total."""


def records(rng: random.Random, texts: list[str], numbers: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place in range(rng.randint(2, 6)):
        row: dict[str, Any] = {"id": place + 1}
        row |= {name: rng.choice(TEXTS[name]) if rng.random() < 0.95 else None for name in texts}
        figures = {n: rng.choice([rng.randint(0, 50), round(rng.uniform(1, 90), 2), str(place)]) for n in numbers}
        row |= {name: value if rng.random() < 0.97 else None for name, value in figures.items()}
        rows.append(row | {"active": rng.random() < 0.5})
    return rows


def question(
    rng: random.Random, rows: list[dict[str, Any]], texts: list[str], numbers: list[str]
) -> tuple[str, Any, int]:
    """A question, what is right (None where nothing is), and how many of the records that are meant have no figure."""
    before = behind = ""
    name = rng.choice(texts)
    if rng.random() < 0.7:
        value = rng.choice([each for each in TEXTS[name] if each not in TWICE])
        rows = [row for row in rows if row[name] == value]
        before = f"{value} " if name in ("status", "category") else ""
        behind = "" if before else f" of {value}" if name == "owner" else f" in {value}"
    if rng.random() < 0.4:
        rows, before = [row for row in rows if row["active"]], f"active {before}"
    figure, bounded = rng.choice(numbers), rng.choice(numbers)
    if rng.random() < 0.3 and bounded != figure and not any(row[bounded] is None for row in rows):
        word, bound = rng.choice(list(BOUNDS)), rng.randint(1, 40)
        behind += f" with a {bounded.removesuffix('_kg')} of {word} {bound}"
        rows = [row for row in rows if BOUNDS[word](Decimal(str(row[bounded])), bound)]
    values = [Decimal(str(row[figure])) for row in rows if row[figure] is not None]
    told = values or None
    said = figure.removesuffix("_kg")
    missing = len(rows) - len(values)
    match rng.choice(["count", "mean", "sum", "most", "least"]):
        case "count":
            return f"How many {before}orders{behind} are there?", len(rows), 0
        case "mean":
            return f"What is the average {said} of the {before}orders{behind}?", told and sum(told) / len(told), missing
        case "sum":
            return f"What is the total {said} of the {before}orders{behind}?", told and sum(told), missing
        case "most":
            return f"Which {before}order{behind} has the highest {said}?", told and max(told), missing
        case _:
            return f"Which {before}order{behind} has the lowest {said}?", told and min(told), missing


@pytest.mark.parametrize("seed", range(6))
def test_a_figure_is_right_or_there_is_none(seed: int) -> None:
    rng, answered = random.Random(seed), 0
    for _ in range(50):
        texts, numbers = rng.sample(list(TEXTS), rng.randint(1, 2)), rng.sample(NUMBERS, rng.randint(1, 2))
        rows = records(rng, texts, numbers)
        asked, right, missing = question(rng, rows, texts, numbers)
        text = Agent("offline", tools=[_listing(rows)]).run_sync(asked).text
        if DECLINED.search(text):
            continue
        head = text.splitlines()[0]
        found = re.search(r"^(\d+) (?:of the|listed)|: (-?[\d,]+(?:\.\d+)?)", head)
        assert found is not None, (asked, text)
        figure = Decimal(next(each for each in found.groups() if each).replace(",", ""))
        assert right is not None, (asked, text, rows)
        assert ("without" in head) == (missing > 0 and "How many" not in asked), (asked, text, rows)
        assert abs(figure - Decimal(right)) <= Decimal("0.0051"), (asked, text, rows)
        answered += 1
    assert answered > 5


def _listing(rows: list[dict[str, Any]]) -> Any:
    @tool(effect="read")
    def list_orders() -> list[dict[str, Any]]:
        """All orders."""
        return rows

    return list_orders
