"""Text files whose lines end in several ways: read, or refused in words, and never as if they had no rows."""

from pathlib import Path

import pytest

from treadle.analyst import AnalystError, Catalog, Dimension, Measure, QueryRequest, Source, TextFormat, query

from .conftest import QUICK

LINES = ["account;amount", "1;5", "ü;7"]


def rows(place: Path, data: bytes, **text: object) -> int:
    (place / "s.csv").write_bytes(data)
    form = TextFormat(delimiter=";", **text)  # type: ignore[arg-type]
    source = Source(name="s", kind="csv", path="s.csv", text=form, dimensions=(Dimension(name="account"),),
                    measures=(Measure(name="amount"),))  # fmt: skip
    found = query(Catalog([source], place), QueryRequest(source="s", filters={"account": "ü"}), bounds=QUICK)
    return int(found.totals["amount"] or 0) + found.source_rows


@pytest.mark.parametrize("titles", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("table", ["\n", "\r\n", "\r"])
def test_titles_may_end_in_another_way_than_the_table(tmp_path: Path, titles: str, table: str) -> None:
    text = titles.join(["Balances; of January", "", ""]) + table.join([*LINES, ""])
    encoding = {"\n": "utf-8", "\r\n": "utf-8-sig", "\r": "cp1252"}[table]
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    assert rows(tmp_path, text.encode(encoding), skip=2, encoding=declared) == 8


@pytest.mark.parametrize("ends", [("\n", "\r\n", "\n"), ("\r\n", "\n", "\n"), ("\r\n", "\r\n", "\n")])
def test_a_table_whose_lines_end_in_several_ways_is_refused_in_words(tmp_path: Path, ends: tuple[str, ...]) -> None:
    text = "".join(line + end for line, end in zip(LINES, ends, strict=True))
    with pytest.raises(AnalystError, match="save the file so that all lines end alike"):
        rows(tmp_path, text.encode())
