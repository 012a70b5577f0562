"""No digit is ever lost: every command that shows figures, drawn at terminals from 60 to 200 columns."""

import io
import json
import re
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from terminal import drawn

WIDTHS = (200, 120, 100, 80, 60)

SCRIPT = '''
from treadle import Agent, Limits, Price, Usage, tool
from treadle.testing import ScriptedModel

@tool(effect="read")
def look_up_the_stock_of_a_product(number: int) -> str:
    """在庫を調べます。 Looks up what is in stock; e\u0301t\u00e9, mid-word marks as well."""
    return f"{number * 1234567} in stock"

def says(request):
    if request.step == 0:
        return [("look_up_the_stock_of_a_product", {"number": at}) for at in range(123)]
    return "合計 1,234,567 e\u0301"

usage = Usage(12345678, 7890123)
model = ScriptedModel(says, name="a-model-with-a-long-name-20261122", usage=usage, price=Price(3, 15))
agent = Agent(model, tools=[look_up_the_stock_of_a_product], name="Beschaffung", limits=Limits(tool_calls=500))
'''
QUESTION = (
    "在庫の合計金額を教えてください 2026 e\u0301te\u0301 " + "and a good deal more than any terminal has room for " * 3
)

SOURCES = """
sources:
  buchhaltung: {kind: csv, path: a.csv, dimensions: {name: {}, account: {}}, measures: {amount: {}}}
  zentrallager: {kind: csv, path: b.csv, dimensions: {name: {}, account: {}}, measures: {amount: {}}}
"""
COMPARE = ["compare", "buchhaltung", "zentrallager", "--sources", "sources.yaml"]


def plain(written: str) -> str:
    """Without the line that says what is under way, each time it was written and taken away."""
    return re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", written).replace("\r\x1b[K", "").replace("\r\n", "\n")


def too_wide(shown: str, columns: int) -> list[str]:
    """Lines that are wider than the terminal, but for commands and paths, which are to be copied."""
    from rich.cells import cell_len

    copied = ("treadle show", "csv: /")
    return [line for line in shown.splitlines() if cell_len(line) > columns and not any(map(line.count, copied))]


REFUSED = [
    ["runs", "--since", "yesterday"], ["ask", "hi", "--skill", "invntory"], ["ask", "hi", "--model", "offlin"],
    ["config", "set", "limits.stepz", "5"], ["compare", "a", "b"], ["ask", "hi", "--tools", "nope.py"],
]  # fmt: skip


def test_what_is_refused_is_said_in_lines_that_end_between_words(treadle: Any) -> None:
    whole = [treadle(*words).err for words in REFUSED]
    for told, shown in zip(whole, drawn(REFUSED, (60,), treadle.folder, treadle.environment)[0], strict=True):
        said = plain(shown)
        assert not too_wide(said, 60)
        assert said.replace("\n  | ", " ").split() == told.split()


@pytest.fixture
def stocked(treadle: Any) -> Any:
    (treadle.folder / "shop.py").write_text(SCRIPT, encoding="utf-8")
    (treadle.folder / "sources.yaml").write_text(SOURCES, encoding="utf-8")
    for name, factor in (("a", 1), ("b", 2)):
        rows = "".join(
            f"株式会社 Gesellschaft für Beteiligungen {at},{800000 + at},{factor * 98765432.19 * (at + 1):.2f}\n"
            for at in range(3)
        )
        (treadle.folder / f"{name}.csv").write_text(f"name,account,amount\n{rows}", encoding="utf-8")
    assert treadle("check", "--example", "example").code == 0
    done = treadle("ask", QUESTION, "--agent", "shop:agent")
    assert done.code == 0, done.err
    return treadle


COMMANDS = [
    ["runs"], ["models"], ["sources", "--sources", "sources.yaml"], ["doctor"], COMPARE, ["show", "last"],
    ["show", "last", "--why"], ["show", "last", "--waterfall"], ["stats"], ["costs", "last"],
    ["costs", "last", "--by", "tool"], ["tools", "--tools", "shop"], ["sources", "check", "--sources", "sources.yaml"],
    ["query", "buchhaltung", "--by", "name", "--sources", "sources.yaml"],
    ["rows", "buchhaltung", "zentrallager", "--key", "account", "--sources", "sources.yaml"],
    ["check", "example/checks.yaml"], ["sources", "diff", "buchhaltung", "zentrallager", "--sources", "sources.yaml"],
    ["sources", "buchhaltung", "--sources", "sources.yaml"], ["diff", "last", "last", "--all"],
]  # fmt: skip


def test_every_figure_is_whole_at_every_width(stocked: Any) -> None:
    (run,) = json.loads(stocked("runs", "--json").out)
    stats = json.loads(stocked("stats", "--json").out)
    costs = json.loads(stocked("costs", "last", "--json").out)
    models = json.loads(stocked("models", "--json").out)
    compared = json.loads(stocked(*COMPARE, "--json").out)
    assert run["tool_calls"] == 123
    rows = [
        f"{float(one[side]):,.2f}"
        for one in compared["top_differences"]
        for side in ("source_a_value", "source_b_value", "diff")
    ]
    total = f"${run['cost']}"
    wanted: dict[str, list[str]] = {
        "runs": [run["run_id"], "123", "answered"],
        "models": [one["name"] for one in models["providers"] if len(one["name"]) < 55],
        "sources": ["buchhaltung", "zentrallager"],
        "compare": [*rows, f"{float(compared['summary']['total_diff']):,.2f}", "800002"],
        "show": [run["run_id"], "24,691,356", "15,780,246", total, "123 tool calls"],
        "stats": [f"{24691356 + 15780246:,}", total, "123"],
        "costs": ["12,345,678", "7,890,123", total],
        "doctor": [run["run_id"]],
        "check": ["3,262.48", "8,000.00"],
    }
    assert stats["runs"] == 1
    assert str(costs["total"]["cost"]) == run["cost"]
    environment = {**stocked.environment, "NO_COLOR": "1"}
    for columns, screens in zip(WIDTHS, drawn(COMMANDS, WIDTHS, stocked.folder, environment), strict=True):
        for words, shown in zip(COMMANDS, map(plain, screens), strict=True):
            where = f"{words} at {columns} columns:\n{shown}"
            assert "Traceback" not in shown, where
            assert shown.strip(), where
            assert not too_wide(shown, columns), (too_wide(shown, columns), where)
            for figure in wanted[words[0]] if len(words) < 3 or words[0] == "compare" else ():
                assert re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(figure)}(?!\d|[.,]\d)", shown), (figure, where)


CELL = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
FIGURE = st.integers(-(10**15), 10**15).map(lambda value: f"{value:,}")


@settings(max_examples=deep(60), deadline=None)
@given(
    rows=st.lists(st.tuples(st.from_regex(r"[0-9a-f-]{1,30}", fullmatch=True), CELL, FIGURE, CELL, FIGURE), max_size=4),
    columns=st.integers(40, 140),
)
def test_a_table_loses_no_digit_and_is_never_too_wide(rows: list[tuple[str, ...]], columns: int) -> None:
    from unittest.mock import patch

    from rich.cells import cell_len
    from rich.console import Console

    from treadle.cli.table import print_table

    file = io.StringIO()
    out = Console(file=file, force_terminal=True, width=columns, color_system=None, markup=False, highlight=False)
    with patch("treadle.cli.table.console", lambda: out):
        print_table(["id", "said", "tokens", "question", "cost"], rows, right=["tokens", "cost"], cut=["question"])
    lines = [line for line in file.getvalue().split("\n")]
    assert max(map(cell_len, lines)) <= columns, lines
    words = set(re.split(r"[^\S]+", file.getvalue()))
    for row in rows:
        assert {row[0], row[2], row[4]} <= words


def test_what_a_row_is_stays_on_its_line_where_there_is_no_terminal(stocked: Any) -> None:
    header, row = stocked("runs").out.splitlines()
    assert header.split() == ["run", "started", "status", "steps", "calls", "model", "question"]
    assert row.split()[3:6] == ["answered", "2", "123"]
