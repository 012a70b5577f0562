"""A value that stands under no name is no figure that is left out, or another: 12,50 between commas is never 12."""

import gzip
import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from depth import deep
from msgspec.structs import replace

from treadle.analyst import AnalystError, Catalog, Dimension, Measure, QueryRequest, Source, query
from treadle.analyst.asking.propose import propose
from treadle.analyst.declared.source import TextFormat

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

NAMES = ("account", "text", "amount", "code")


def written(folder: Path, text: str, encoding: str = "utf-8", name: str = "f.csv") -> Source:
    data = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    delimiter = max(";,\t", key=text.count)
    return Source(
        name="f",
        kind="csv",
        path=name,
        text=TextFormat(delimiter=delimiter, encoding=encoding, decimal="."),
        dimensions=(Dimension(name="account"),),
        measures=(Measure(name="amount"),),
    )


def total(folder: Path, source: Source) -> Decimal | None:
    return query(Catalog([source], folder), QueryRequest(source="f"), bounds=QUICK).totals["amount"]


SHIFTED = {
    "under no name": "account,text,amount,\n100,foo,12,50,\n",
    "under no name, not in the first row": "account,text,amount,\n100,foo,12,\n100,foo,12,50,\n",
    "under no name, without a delimiter behind": "account,text,amount,\n100,foo,12,50\n",
    "under the next name": "account,text,amount,code\n100,foo,1,EUR\n100,foo,12,50,\n",
    "under the next name, in the first row": "account,text,amount,code\n100,foo,12,50,\n100,foo,1,EUR\n",
    "under the next name, in the last line": "account,text,amount,code\n100,foo,1,EUR\n100,foo,12,50,",
    "under the next name, all end in a delimiter": "account,text,amount,code,\n100,foo,1,EUR,\n100,foo,12,50,,\n",
    "several fields more": "account;text;amount\n100;foo;1\n100;foo;1;;;\n",
    "one field more and less": "account;text;amount\n100;foo;1;\n100;foo;1\n",
}


@pytest.mark.parametrize("what", SHIFTED)
@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8", "f.csv"), ("utf-16", "f.txt"), ("utf-16-le", "f.csv"), ("cp1252", "f.txt.gz")]
)
def test_a_value_that_has_the_delimiter_in_it_is_refused(tmp_path: Path, what: str, encoding: str, name: str) -> None:
    text = SHIFTED[what].replace("\n", "\r\n" if name == "f.txt" else "\n")
    source = written(tmp_path, text, encoding, name)
    with pytest.raises(AnalystError) as caught:
        total(tmp_path, source)
    told = str(caught.value)
    assert told.startswith("source 'f': ")
    assert f"{name}" in told
    assert "have the file written with another delimiter, or such values in quotes" in told


@pytest.mark.parametrize(("line", "why"), [("2;b", "has 2 fields"), ('2;"b" c;1', "quote"), ("2;b;12;50", "4 fields")])
@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-8", "f.csv"), ("utf-16", "f.csv"), ("cp1250", "f.csv.gz"), ("utf-16-le", "f.csv"), ("utf-8", "f[1].csv")],
)
def test_a_line_is_told_as_it_stands_in_the_file(tmp_path: Path, encoding: str, name: str, line: str, why: str) -> None:
    """Of what the engine reads a copy of, the copy was named, and the line counted from the names of the columns on."""
    source = written(tmp_path, f"Titles\n\naccount;text;amount\n1;a;5\n{line}\n", encoding, name)
    declared = replace(source, text=replace(source.text, skip=2))
    with pytest.raises(AnalystError, match=rf"source 'f': {re.escape(name)}, line 5, cannot be read.*{why}"):
        total(tmp_path, declared)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("behind", [(1, 1), (3, 3), (0, 0), (0, 1), (1, 2), (1, 4)])
@pytest.mark.parametrize("last", ["EUR", ""])
def test_delimiters_at_the_end_of_all_lines_are_no_fault(
    tmp_path: Path, encoding: str, behind: tuple[int, int], last: str
) -> None:
    """As SAP writes them, behind the names too or behind rows alone."""
    names, rows = (";" * count for count in behind)
    text = f"account;text;amount;code{names}\n1;;2.50;EUR{rows}\n\n2;x;-1;{last}{rows}\n3;;;{rows}\n"
    assert total(tmp_path, written(tmp_path, text, encoding)) == Decimal("1.50")


def test_a_column_without_a_name_that_is_declared_is_read(tmp_path: Path) -> None:
    source = written(tmp_path, "account;text;amount;\n1;x;2;EUR\n2;x;3;USD\n")
    with pytest.raises(AnalystError, match=r"'USD' in field 4 .* declare a dimension with 'column: column4'"):
        total(tmp_path, source)
    declared = replace(source, dimensions=(*source.dimensions, Dimension(name="code", column="column4")))
    assert total(tmp_path, declared) == 5


def test_a_first_row_that_cannot_be_told_the_width_of_is_read_by_the_engine(tmp_path: Path) -> None:
    long = "x" * 200_000
    assert total(tmp_path, written(tmp_path, f"account;text;amount\n1;{long};2\n2;x;3\n")) == 5


def test_a_proposed_source_has_no_column_without_name_and_value(tmp_path: Path) -> None:
    """Declared, it would be one that may have values, as soon as one has the delimiter in it."""
    written(tmp_path, "account;text;amount;\n" + "1;x;2.50;\n2;y;3.25;\n" * 3)
    (found,) = propose(tmp_path / "f.csv", QUICK)
    assert [item.source_column for item in found.source.dimensions] == ["account", "text"]
    assert found.questions == ()
    assert total(tmp_path, found.source) == Decimal("17.25")
    written(tmp_path, "account;text;amount;\n1;x;2;50;\n")
    with pytest.raises(AnalystError, match="'50' in field 4"):
        total(tmp_path, found.source)


ASKED = {
    "account,text,amount,\n100,foo,12,50\n200,bar,7,25\n": "column4 has no name, and has values such as 50: if a value",
    "account,text,amount,\n100,foo,12,50,\n200,bar,7,25,\n": "below that with account, text, amount have more fields",
    "account,text,amount\n100,foo,12,50,\n200,bar,7,25,\n": "below that with account, text, amount have more fields",
    "account,text,amount,code\n100,foo,12,50,\n200,bar,7,25,\n": "below that with account, text, amount have more",
}


@pytest.mark.parametrize("text", ASKED)
def test_a_proposed_source_asks_what_all_rows_have_too_much(tmp_path: Path, text: str) -> None:
    written(tmp_path, text)
    (found,) = propose(tmp_path / "f.csv", QUICK)
    assert any(ASKED[text] in question for question in found.questions), found.questions


def test_a_proposed_source_is_refused_where_a_later_row_has_a_value_under_no_name(tmp_path: Path) -> None:
    written(tmp_path, "account,text,amount,\n" + "1,x,2,\n" * 10_001 + "1,x,2,50\n")
    with pytest.raises(AnalystError, match="'50' in field 4"):
        propose(tmp_path / "f.csv", QUICK)


@pytest.mark.parametrize("seed", range(deep(25)))
def test_a_figure_is_that_of_the_fields_or_none(tmp_path: Path, seed: int) -> None:
    """Fields as they are meant are joined, in quotes or not: where that moves one, no figure is told.

    In files of any delimiter, encoding and order of columns, one or two, with titles above and totals below.
    """
    chance = Random(seed)
    delimiter, encoding = chance.choice(",,;|\t"), chance.choice(["utf-8", "utf-16", "utf-16-le", "cp1252"])
    ending, name = chance.choice(["\n", "\r\n", "\r"]), chance.choice(["f{}.csv", "f{}.csv.gz"])
    skip, quoted, footer = chance.choice([0, 0, 2]), chance.random() < 0.3, chance.random() < 0.3
    order = chance.sample(range(4), 4)
    unnamed = chance.choice([None, None, order[-1]]) if order[-1] != 2 else None
    behind = [0, chance.choice([0, 0, 1, 2])] if unnamed is not None else [chance.choice([0, 0, 1, 2]) for _ in "nr"]
    moving = chance.choice([0, 0.2, 0.2])
    amounts, moved = [], []
    for at in range(chance.choice([1, 2])):
        rows = [[*map(chance.choice, ("12", "xy", ["1", "12", "", "0.5"], ["E", ""]))]
                for _ in range(chance.choice([1, 2, 5, 30]))]  # fmt: skip
        for row in rows:
            if chance.random() < moving:
                row[chance.choice([1, 2])] = f"2{delimiter}50"
        amounts += [row[2] for row in rows]
        moved += [any(delimiter in cell for cell in row) and not quoted for row in rows]
        titles = [["Titles"], [""]] if skip else []
        names = ["" if place == unnamed else NAMES[place] for place in order]
        below = [["Sum", "", "", ""]] if footer else []
        listed = [[row[place] for place in order] for row in [*rows, *below]]
        told = [[f'"{cell}"' if quoted else cell for cell in row] + [""] * behind[1] for row in listed]
        lines = [delimiter.join(fields) for fields in [*titles, [*names, *[""] * behind[0]], *told]]
        data = (ending.join(lines) + chance.choice(["", ending])).encode(encoding)
        (tmp_path / name.format(at)).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    source = Source(
        name="f", kind="csv", path=name.format("*"), measures=(Measure(name="amount"),),
        text=TextFormat(delimiter=delimiter, encoding=encoding, skip=skip, totals=("sum",)),
        dimensions=tuple(Dimension(name=NAMES[at], column="column4" if at == unnamed else "") for at in (0, 1, 3)),
    )  # fmt: skip
    # Of a file all rows of which are moved nothing tells that they are, but what is in them.
    if behind[0] > behind[1] or (any(moved) and not (all(moved) and not footer)):
        with pytest.raises(AnalystError, match=r"the line of names|the first row|no name|no number"):
            total(tmp_path, source)
    elif not any(moved):
        sums = [Decimal(one.replace(delimiter, "")) for one in amounts if one and "50" not in one]
        if quoted and any(delimiter in one for one in amounts):
            with pytest.raises(AnalystError, match="no number"):
                total(tmp_path, source)
        else:
            assert total(tmp_path, source) == (sum(sums) if sums else None)
