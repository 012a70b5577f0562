"""Rows between two quotes that are signs of their texts are not one row: their figures were lost without a word."""

import gzip
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from depth import deep
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    compare,
    declaration,
    propose,
    query,
)
from treadle.analyst.declared.source import TextFormat

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")


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
    behind = HELD[what].endswith("4;y;1,00\n") or "c;d" in HELD[what]
    last = 2 + HELD[what].rstrip("\n").count("\n") + 1 - behind
    declared = source(tmp_path, lines, encoding, name, skip=1)
    with pytest.raises(AnalystError, match=f"opens in line {first} that closes in line {last}, .*'quotes: false'"):
        asked(tmp_path, declared)
    if '"a' not in HELD[what]:
        found = asked(tmp_path, replace(declared, text=replace(declared.text, quotes=False)))
        assert found.source_rows == HELD[what].count("\n")


LOST = {
    "opens behind a sign": '1;5" x;"pipe;6,00\n2;a;b;7,00\n3;c;cable 5";8,00\n',
    "opens behind a text in quotes": '1;"a;b";"pipe;6,00\n2;a;b;7,00\n3;c;cable 5";8,00\n',
    "opens behind blanks": '1;x;  "pipe;6,00\n2;a;b;7,00\n3;c;cable 5";8,00\n',
    "opens after it has closed": '1;x;"pipe"  "y;6,00\n2;a;b;7,00\n3;c;cable 5";8,00\n',
    "closes before a sign": '1;"x;a;6,00\n2;a;b;7,00\n3;cable 5";4" z;8,00\n',
    "closes before a text in quotes": '1;"x;a;6,00\n2;a;b;7,00\n3;cable 5";"q;r";8,00\n',
    "an empty amount": '1;x;"pipe;6,00\n2;a;b;\n3;c;cable 5";\n',
    "an empty line": '1;x;"pipe;6,00\n\n3;c;cable 5";8,00\n',
    "an empty field at the end": '1;x;"pipe;6,00;\n2;a;b;7,00;\n3;c;cable 5";8,00;\n',
}


@pytest.mark.parametrize("what", LOST)
def test_rows_are_held_wherever_quotes_open_and_close(tmp_path: Path, what: str) -> None:
    end = ["\n", "\r\n", "\r"][len(what) % 3]
    closed = ";" if what == "an empty field at the end" else ""
    text = f'account;text;note;amount\n{LOST[what]}4;"one\ntext";x;1,00{closed}\n'
    declared = source(tmp_path, text.replace("\n", end).replace(f"one{end}", "one\n"))
    if what == "opens behind blanks":
        # To this engine a quote behind blanks is a sign like any other.
        found = asked(tmp_path, declared)
        assert (found.totals["amount"], found.source_rows) == (Decimal(22), 4)
        return
    with pytest.raises(AnalystError, match=r"opens in line 2 that closes in line 4, .*'quotes: false'"):
        asked(tmp_path, declared)


@pytest.mark.parametrize(
    "measures",
    [
        (Measure(name="amount", expression="if(note = 'Haben', -amount, amount)"),),
        (Measure(name="amount"), Measure(name="texts", column="text", aggregation="count")),
    ],
    ids=["text that tells a sign", "text that is counted"],
)
def test_a_text_in_a_measure_is_no_amount(tmp_path: Path, measures: tuple[Measure, ...]) -> None:
    lines = 'account;text;note;amount\n1;"pipe;Soll;6,00\n2;bolt;Haben;7,00\n3;cable 5";Soll;8,00\n'
    with pytest.raises(AnalystError, match="opens in line 2 that closes in line 4"):
        asked(tmp_path, replace(source(tmp_path, lines), measures=measures))


def test_each_source_of_a_file_is_looked_at(tmp_path: Path) -> None:
    """As the one has texts where the other has amounts, what is no row to the one is one to the other."""
    lines = 'account;text;amount;other\n1;"pipe;5,00;long\n3;cable 5";7,00;text\n'
    amounts = source(tmp_path, lines)
    others = replace(amounts, name="others", measures=(Measure(name="amount", column="other"),))
    with pytest.raises(AnalystError, match=r"'f': in .* opens in line 2 that closes in line 3"):
        compare(Catalog([amounts, others], tmp_path), CompareRequest(source_a="others", source_b="f"), bounds=QUICK)


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


OPENING = ['"pipe;x', 'x;"pipe', '5" x;"pipe', ' "pipe;x', '"a" "b;x']
CLOSING = ['cable 7";x', 'x;cable 7"', 'cable 7";4" z']


@pytest.mark.parametrize("seed", range(deep(10)))
def test_a_figure_is_that_of_the_lines_or_none(tmp_path: Path, seed: int) -> None:
    """Each line is a row, whatever quotes stand in its texts: where they would hold several, no figure is told."""
    chance = Random(seed)
    count = chance.choice([4, 8, 40])
    odd = ['5" cable;', '"whole";x', 'a"b;x']
    texts = [chance.choice(["x;y", "y z;", ";", *(odd if chance.random() < 0.2 else [])]) for _ in range(count)]
    quoted = [chance.choice(OPENING), chance.choice(CLOSING), '";x']
    for at, text in zip(sorted(chance.sample(range(count), chance.choice([0, 1, 2, 2, 3]))), quoted, strict=False):
        texts[at] = text
    rows = [(text, Decimal(chance.randint(-999, 999)) / 100) for text in texts]
    lines = [";".join(["1", text, str(amount).replace(".", ",")]) for text, amount in rows]
    declared = source(tmp_path, "\n".join(["account;text;note;amount", *lines]) + chance.choice(["", "\n"]))
    try:
        found = asked(tmp_path, declared)
    except AnalystError:
        found = asked(tmp_path, replace(declared, text=replace(declared.text, quotes=False)))
    assert (found.totals["amount"], found.source_rows) == (sum(amount for _, amount in rows), len(rows))


def test_a_text_whose_lines_look_like_rows_is_one_once_that_is_said(tmp_path: Path) -> None:
    """`sources init` and each question refused it, and nothing that could be declared let it be read."""
    lines = 'account;amount;text\n1;5,00;"paid in two parts\n2;3,00;see there"\n4;1,00;x\n'
    declared = replace(source(tmp_path, lines), dimensions=(Dimension(name="account"),))
    with pytest.raises(AnalystError, match=r"line 2 that closes in line 3.* 'quotes: true'"):
        asked(tmp_path, declared)
    # The data leave open which it is; that one was taken is told beside it.
    (proposal,) = propose(tmp_path / "f.csv")
    assert "if they hold lines together, say true" in declaration([(tmp_path / "f.csv", proposal)], tmp_path)
    said = asked(tmp_path, replace(declared, text=replace(declared.text, quotes=True)))
    assert (said.totals["amount"], said.source_rows) == (Decimal(6), 2)


@pytest.mark.parametrize("measures", [(), (Measure(name="rows", column="*", aggregation="count"),)])
def test_rows_without_an_amount_are_held_as_well(tmp_path: Path, measures: tuple[Measure, ...]) -> None:
    """Of a table of accounts, such as that of a mapping, all rows between two inch signs were one."""
    lines = 'account;text;note\n1;"pipe;a\n2;bolt;b\n3;cable 5";c\n4;"two\nlines";d\n'
    declared = replace(source(tmp_path, lines), measures=measures)
    with pytest.raises(AnalystError, match=r"opens in line 2 that closes in line 4, .*has the fields of one"):
        query(Catalog([declared], tmp_path), QueryRequest(source="f", dimensions=["account"]), bounds=QUICK)
    apart = replace(declared, text=replace(declared.text, quotes=False))
    with pytest.raises(AnalystError, match="line 5"):
        query(Catalog([apart], tmp_path), QueryRequest(source="f", dimensions=["account"]), bounds=QUICK)


def test_rows_held_far_down_are_asked_about_in_a_proposal(tmp_path: Path) -> None:
    """They were refused, so that there was no declaration in which to say what they are."""
    rows = "".join(f"{at};{at},00;some text {at}\n" for at in range(70_000))
    footer = "Summe;2.449.973.008,00\n"
    (tmp_path / "f.csv").write_text(f'account;amount;text\n{rows}1;5,00;"paid in parts\n2;3,00;see there"\n{footer}')
    (proposal,) = propose(tmp_path / "f.csv")
    assert (proposal.source.text.quotes, proposal.source.text.totals) == (None, ("summe",))
    assert any("a quote opens in line 70002 that closes in line 70003" in one for one in proposal.questions)
    with pytest.raises(AnalystError, match="'quotes: true'"):
        asked(tmp_path, proposal.source)


def test_that_fields_may_stand_in_quotes_says_nothing_of_a_sheet(tmp_path: Path) -> None:
    """It was what holds without a word, so that declarations have it; then it was refused."""
    told = "sources:\n  f: {{kind: xlsx, path: f.xlsx, text: {{quotes: {}}}, measures: {{a: {{}}}}}}\n"
    (tmp_path / "sources.yaml").write_text(told.format("true"))
    assert Catalog.load(tmp_path / "sources.yaml").source("f").kind == "xlsx"
    (tmp_path / "sources.yaml").write_text(told.format("false"))
    with pytest.raises(AnalystError, match=r"takes no text\.quotes"):
        Catalog.load(tmp_path / "sources.yaml")
