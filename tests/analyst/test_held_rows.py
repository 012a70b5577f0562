"""Rows between two quotes that are signs of their texts are not one row: their figures were lost without a word."""

import gzip
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from depth import deep
from msgspec.structs import replace

from treadle.analyst import AnalystError, Catalog, Dimension, Measure, QueryRequest, QueryResult, Source, query
from treadle.analyst.declared.source import TextFormat

from .conftest import QUICK


def source(folder: Path, text: str, encoding: str = "utf-8", name: str = "f.csv", skip: int = 0) -> Source:
    data = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return Source(
        name="f", kind="csv", path=name, text=TextFormat(delimiter=";", decimal=",", encoding=encoding, skip=skip),
        dimensions=(Dimension(name="account"), Dimension(name="text")), measures=(Measure(name="amount"),),
    )  # fmt: skip


def asked(folder: Path, declared: Source) -> QueryResult:
    return query(Catalog([declared], folder), QueryRequest(source="f"), bounds=QUICK)


HELD = {
    "first and last": '1;"pipe;5,00\n2;bolt;6,00\n3;cable 5";7,00\n',
    "side by side": '1;x;1,00\n2;"pipe;6,00\n3;cable 7";7,00\n4;y;1,00\n',
    "beside a text in quotes": '1;"a;b";1,00\n2;"pipe;6,00\n3;"c;d";6,00\n4;cable 7";7,00\n',
    "behind a text of several lines": '1;"a\nb";1,00\n2;"pipe;6,00\n3;y;6,00\n4;cable 7";7,00\n',
    "far apart": '1;"pipe;5,00\n' + "2;bolt;6,00\n" * 100_000 + '3;cable 7";7,00\n',
}


@pytest.mark.parametrize("what", HELD)
@pytest.mark.parametrize(
    ("encoding", "name", "end"),
    [("utf-8", "f.csv", "\n"), ("utf-16", "f.csv", "\r\n"), ("cp1252", "f.csv.gz", "\n"), ("utf-8", "f.csv", "\r")],
)
def test_rows_between_two_quotes_are_refused(tmp_path: Path, what: str, encoding: str, name: str, end: str) -> None:
    title = "Liste\n"
    lines = (title + "account;text;amount\n" + HELD[what]).replace("\n", end)
    first = 2 + HELD[what][: HELD[what].index('"pipe')].count("\n") + 1
    last = 2 + HELD[what].rstrip("\n").count("\n") + 1 - HELD[what].endswith("4;y;1,00\n")
    declared = source(tmp_path, lines, encoding, name, skip=1)
    with pytest.raises(AnalystError, match=f"opens in line {first} that closes in line {last}, .*'quotes: false'"):
        asked(tmp_path, declared)
    if '"a' not in HELD[what]:
        found = asked(tmp_path, replace(declared, text=replace(declared.text, quotes=False)))
        assert found.source_rows == HELD[what].count("\n")


TEXTS = ["x", "", "a\nb", "a;b", 'say ""so""', "5 rue A;\n75001 Paris; FR", "\n", "a\n7;b;8,00\nc"]


@pytest.mark.parametrize("seed", range(deep(6)))
def test_texts_of_several_lines_stay_what_they_are(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    rows = [(chance.choice("12"), chance.choice(TEXTS), Decimal(chance.randint(-999, 999)) / 100) for _ in range(20)]
    order = chance.choice([[0, 1, 2], [0, 2, 1], [2, 0, 1]])

    def line(fields: Sequence[str]) -> str:
        return ";".join(fields[at] for at in order)

    lines = [line(["account", "text", "amount"])]
    lines += [line([account, f'"{text}"', str(amount).replace(".", ",")]) for account, text, amount in rows]
    found = asked(tmp_path, source(tmp_path, "\n".join(lines), chance.choice(["utf-8", "utf-16", "cp1252"])))
    assert (found.totals["amount"], found.source_rows) == (sum(amount for *_, amount in rows), len(rows))


QUOTED = ['"pipe', 'cable 7"', '"']


@pytest.mark.parametrize("seed", range(deep(10)))
def test_a_figure_is_that_of_the_lines_or_none(tmp_path: Path, seed: int) -> None:
    """Each line is a row, whatever quotes stand in its texts: where they would hold several, no figure is told."""
    chance = Random(seed)
    count = chance.choice([4, 8, 40])
    texts = [chance.choice(["x", "y z", "", *(['5" cable', '"whole"', 'a"b'] if chance.random() < 0.2 else [])])
             for _ in range(count)]  # fmt: skip
    for at, text in zip(sorted(chance.sample(range(count), chance.choice([0, 1, 2, 2, 3]))), QUOTED, strict=False):
        texts[at] = text
    rows = [(text, Decimal(chance.randint(-999, 999)) / 100) for text in texts]
    lines = [";".join(["1", text, str(amount).replace(".", ",")]) for text, amount in rows]
    declared = source(tmp_path, "\n".join(["account;text;amount", *lines]) + chance.choice(["", "\n"]))
    try:
        found = asked(tmp_path, declared)
    except AnalystError:
        found = asked(tmp_path, replace(declared, text=replace(declared.text, quotes=False)))
    assert (found.totals["amount"], found.source_rows) == (sum(amount for _, amount in rows), len(rows))
