"""Lines of totals and counts with fewer fields than there are names: declared, they are left out; else told apart."""

import gzip
import re
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from depth import deep

from treadle.analyst import AnalystError, Catalog, CompareRequest, QueryRequest, QueryResult, compare, query
from treadle.analyst.asking.check import check
from treadle.analyst.asking.declaration import declaration
from treadle.analyst.asking.footing import usual_marks
from treadle.analyst.asking.propose import propose
from treadle.analyst.declared.place import Place
from treadle.analyst.declared.source import Source, TextFormat
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.reading.totals import USUAL, WITH_NAMES
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

NAMES = "BUKRS;HKONT;HSL;WAERS\n"
ROWS = "1001;0000415000;64,72;EUR\n1002;0000415001;1.392,85;EUR\n"
MARKS = '["summe", "*** % lines", "stand: %"]'


def declared(folder: Path, text: str, totals: str = MARKS, more: str = "", encoding: str = "utf-8") -> Catalog:
    (folder / "f.csv").write_bytes(text.encode(encoding))
    (folder / "sources.yaml").write_text(
        "sources:\n  f:\n    kind: csv\n    path: f.csv\n"
        f"    text: {{delimiter: ';', decimal: ',', thousands: '.', encoding: {encoding}, totals: {totals}{more}}}\n"
        "    dimensions: {company: {column: BUKRS}, currency: {column: WAERS}}\n"
        "    measures: {amount: {column: HSL, currency: currency}}\n"
    )
    return Catalog.load(folder / "sources.yaml")


def asked(catalog: Catalog) -> QueryResult:
    return query(catalog, QueryRequest(source="f", dimensions=["company"]), bounds=QUICK)


@pytest.mark.parametrize(
    "footer", ["Summe;;1.457,57", "SUMME:", "*** 2 lines", "Stand: 31.01.2024;", "Summe;;1.457,57;EUR;x"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_declared_footer_may_have_fewer_fields(tmp_path: Path, footer: str, encoding: str, end: str) -> None:
    """The nightly job's file was refused each morning, whatever was declared."""
    text = f"Liste\n{NAMES}{ROWS}{footer}\n".replace("\n", end)
    found = asked(declared(tmp_path, text, more=", skip: 1", encoding=encoding))
    assert (found.totals["amount"], found.source_rows) == (Decimal("1457.57"), 2)


def test_a_line_that_was_cut_off_is_told_with_its_number_and_no_row_is_lost(tmp_path: Path) -> None:
    text = NAMES + '1001;"two\nlines";1,00;EUR\nSumme;;1,00\n1002;00004\nSumme;;1,00\n'
    with pytest.raises(AnalystError, match=r"f\.csv, line 5, .*it has 2 fields and the line of names 4 .*complete it"):
        asked(declared(tmp_path, text))
    with pytest.raises(AnalystError, match=r"f\.csv, line 4, .*no row has, such as Summe, to 'totals' under 'text'"):
        asked(declared(tmp_path, text, totals="[]"))
    # What marks it marks rows too: as advice it would lose them.
    with pytest.raises(AnalystError) as told:
        asked(declared(tmp_path, NAMES + ROWS + "1001;00004\n", totals="[]"))
    assert "such as 1001" not in str(told.value)


@pytest.mark.parametrize("mark", ["Grand total", "Grand;total", "Grand\ntotal", 'Grand "total"'])
def test_the_text_that_is_advised_for_a_line_in_quotes_leaves_it_out(tmp_path: Path, mark: str) -> None:
    """It was told with its quotes, by which nothing is left out."""
    field = '"' + mark.replace('"', '""') + '"'
    text = f'{NAMES}"1001";"1";"1,00";"EUR"\n{field};"1,00"\n'
    with pytest.raises(AnalystError, match=r"f\.csv, line 3") as told:
        asked(declared(tmp_path, text, totals="[]"))
    (advised,) = re.findall(r"such as (.*), to 'totals'", str(told.value).rpartition(" no row has, ")[2])
    assert asked(declared(tmp_path, text, totals=f"[{advised}]")).totals["amount"] == 1


@pytest.mark.parametrize(
    ("lines", "totals", "told"),
    [
        ("3;Summe;Sohn;4,00;EUR\nSumme;;3,00\n", MARKS, "the text that it begins with"),
        ("3;Total; Energies;4,00;EUR\n", "[total]", "the text that it begins with"),
        ('3;"pipe;4,00;EUR\n4;c;5,00;EUR\nSumme;;12,00\n', '["%summe%"]', "line 4, .*'quotes: false'"),
        ('3;"pipe;4,00;EUR\n4;c;5,00;EUR\n*** 4 lines\n', '["% lines"]', "line 4, .*'quotes: false'"),
        ('3;"pip\nSumme;;"7,00"\n4;c;5,00;EUR\n', '["%summe%"]', "line 4"),
        ('3;"pipe;4,00;EUR\nSumme;;7,00;EUR\n4;c;5,00";EUR\n', '["%summe%"]', "opens in line 4 that closes in line 6"),
    ],
)
def test_no_row_is_left_out_with_a_text_of_it_that_reads_like_a_mark(
    tmp_path: Path, lines: str, totals: str, told: str
) -> None:
    """A text with the delimiter in it has a mark for a field, and one quote all up to the next, or to the end."""
    text = NAMES + "1;a;1,00;EUR\n2;b;2,00;EUR\n" + lines
    with pytest.raises(AnalystError, match=told):
        asked(declared(tmp_path, text, totals=totals))


@pytest.mark.parametrize(
    ("rows", "footer"), [("", "Summe;;3,00;EUR;"), ("", "Summe;;;;;;;"), (";", "Summe;;3,00;EUR"), (";", "Summe;3,00")]
)
def test_a_declared_footer_may_have_other_empty_fields_at_its_end(tmp_path: Path, rows: str, footer: str) -> None:
    """It was refused, with the advice to declare what was declared."""
    found = asked(declared(tmp_path, f"{NAMES}1;a;1,00;EUR{rows}\n2;b;2,00;EUR{rows}\n{footer}\n"))
    assert (found.totals["amount"], found.source_rows) == (3, 2)


def test_lines_without_a_key_may_have_fewer_fields(tmp_path: Path) -> None:
    text = NAMES + "1001;1;1,00;EUR\n;;1,00\n ; ;\n1002;1;2,00;EUR\n"
    assert asked(declared(tmp_path, text, totals='[""]')).totals["amount"] == 3


def test_a_line_that_ends_before_its_keys_is_not_taken_for_one_without(tmp_path: Path) -> None:
    """Where the keys stand behind the amounts, a row that was cut off was left out without a word."""
    text = "HSL;BUKRS;WAERS\n1,00;1001;EUR\n3,00\n"
    with pytest.raises(AnalystError, match=r"f\.csv, line 3, .*complete it"):
        asked(declared(tmp_path, text, totals='[""]'))
    assert asked(declared(tmp_path, text.replace("3,00", "3,00;"), totals='[""]')).totals["amount"] == 1


def test_a_packed_file_has_footers_too(tmp_path: Path) -> None:
    catalog = declared(tmp_path, "")
    (tmp_path / "f.csv").unlink()
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress((NAMES + ROWS + "*** 2 lines\n").encode()))
    yaml = tmp_path / "sources.yaml"
    yaml.write_text(yaml.read_text().replace("path: f.csv", "path: f.csv.gz"))
    catalog = Catalog.load(yaml)
    assert asked(catalog).totals["amount"] == Decimal("1457.57")
    assert check(catalog, catalog.source("f"), bounds=QUICK).problems == ()


@pytest.mark.parametrize(("more", "count"), [(";x", 5), (";x;y;z", 7), (";;;", 7)])
def test_a_line_with_more_fields_is_told_with_how_many_it_has(tmp_path: Path, more: str, count: int) -> None:
    """Any was said to have one more than there are names."""
    with pytest.raises(AnalystError, match=f"line 3, .* has {count} fields and the line of names 4 fields"):
        asked(declared(tmp_path, f"{NAMES}1000;x;1,00;EUR\n1001;x;2,00;EUR{more}\n1002;x;3,00;EUR\n"))


@pytest.mark.parametrize("text", ["", "totals: [Summe], ", "encoding: cp1252, ", "ruled: true, ", "encoding: utf-16, "])
@pytest.mark.parametrize("where", [30, 500, 900, -30])
def test_a_packed_file_that_is_damaged_is_told_as_that(tmp_path: Path, text: str, where: int) -> None:
    """An export that is still being written ended the check of all, where its text was copied or looked at first."""
    chance = Random(0)
    rows = "".join(f"{chance.randint(1000, 9999)};x;{chance.randint(0, 9999)},00;EUR\n" for _ in range(400))
    packed = gzip.compress((NAMES + rows).encode("utf-16" if "utf-16" in text else "utf-8"))
    (tmp_path / "f.csv.gz").write_bytes(packed[:where])
    yaml = tmp_path / "sources.yaml"
    yaml.write_text(
        f"sources: {{f: {{kind: csv, path: f.csv.gz, text: {{{text}delimiter: ';', decimal: ','}}, "
        f"dimensions: {{konto: {{}}}}, measures: {{amount: {{column: Betrag}}}}}}}}"
    )
    catalog = Catalog.load(yaml)
    (problem,) = check(catalog, catalog.source("f"), bounds=QUICK).problems
    assert problem.startswith("source 'f': ")
    assert "f.csv.gz cannot be unpacked: Compressed file ended" in problem


@pytest.mark.parametrize("end", ["", ";"])
def test_a_packed_file_of_other_text_than_was_packed_is_told_as_that(tmp_path: Path, end: str) -> None:
    """The engine unpacks a file without a look at its checksum, and a figure that had changed was added up."""
    declared(tmp_path, "")
    packed = gzip.compress(f"BUKRS;HKONT;HSL;WAERS{end}\n1001;x;5,00;EUR{end}\n".encode(), 0)
    (tmp_path / "f.csv.gz").write_bytes(packed.replace(b";5,00;", b";9,00;"))
    yaml = tmp_path / "sources.yaml"
    yaml.write_text(yaml.read_text().replace("path: f.csv", "path: f.csv.gz"))
    with pytest.raises(AnalystError, match=r"f\.csv\.gz cannot be unpacked: CRC check failed .* all of the file"):
        asked(Catalog.load(yaml))


@pytest.mark.parametrize("seed", range(deep(8)))
def test_footers_anywhere_take_no_row_with_them(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    text, amounts = NAMES, []
    for at in range(chance.randint(1, 30)):
        if chance.random() < 0.3:
            text += chance.choice(["Summe;;5,00\n", "*** 3 lines\n", "Summe;;5,00;EUR\n", '"Summe";\n', '"Summe\n";\n'])
        amounts.append(Decimal(chance.randint(-9999, 9999)) / 100)
        note = chance.choice(["x", '"a;b"', '"two\nlines"', '""', '"say ""so"""', "Summen"])
        text += f"{1000 + at};{note};{amounts[-1]};EUR\n".replace(".", ",")
    found = asked(declared(tmp_path, text))
    assert (found.totals["amount"], found.source_rows) == (sum(amounts), len(amounts))


def test_a_proposal_leaves_out_what_says_that_it_is_no_row(tmp_path: Path) -> None:
    for name, footer in [
        ("a", "Summe;;1.457,57"),
        ("b", "*** 2 lines"),
        ("c", "Anzahl Zeilen: 2;"),
        ("d", "Summe;;1.457,57;EUR;"),
    ]:
        file = tmp_path / f"{name}.csv"
        file.write_text(f"{NAMES}{ROWS}{footer}\n")
        proposed = propose(file, QUICK)
        (tmp_path / f"{name}.yaml").write_text(declaration([(file, proposed[0])], tmp_path))
        assert "have more or fewer fields than there are names" in (tmp_path / f"{name}.yaml").read_text()
        found = query(Catalog.load(tmp_path / f"{name}.yaml"), QueryRequest(source=name), bounds=QUICK)
        assert (found.totals["hsl"], proposed[0].questions) == (Decimal("1457.57"), ())


def test_a_mark_of_lines_of_both_kinds_is_not_said_to_be_of_short_ones_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"{NAMES}{ROWS}Summe;;1.457,57;\n{ROWS}Summe;;1.457,57;\nSumme;;2.915,14\n")
    (proposal,) = propose(file, QUICK)
    text = declaration([(file, proposal)], tmp_path)
    assert proposal.source.text.totals == ("summe",)
    assert "lines marked as totals are left out" in text
    assert "more or fewer fields" not in text


@pytest.mark.parametrize(("more", "sums"), [("", "5,00"), (";KSL", "5,00;1,00")])
def test_many_short_lines_of_totals_make_no_delimiter_of_a_decimal_comma(tmp_path: Path, more: str, sums: str) -> None:
    """They have as many commas as rows have, and only the line of names has none: nothing was an amount any more."""
    names = f"HKONT;TEXT;HSL{more}"
    lines = "".join(f"{at};a;{sums}\nSumme;{sums}\n" for at in range(1000, 1005))
    file = tmp_path / "f.csv"
    file.write_text(f"{names}\n{lines}")
    (proposal,) = propose(file, QUICK)
    assert (proposal.source.text.delimiter, proposal.source.text.skip) == (";", 0)
    assert [one.name for one in proposal.source.measures][:1] == ["hsl"]


def test_a_file_of_one_column_is_given_no_delimiter(tmp_path: Path) -> None:
    """Nothing stands between fields, and a semicolon was said to."""
    file = tmp_path / "f.csv"
    file.write_text("HSL\n1.50\n2.50\n")
    (proposal,) = propose(file, QUICK)
    assert (proposal.source.text, proposal.questions) == (TextFormat(), ())


@pytest.mark.parametrize(
    ("footer", "rows", "told"),
    [
        ("Stand: 31.01.2024", ROWS, r"add \"stand: %\" to 'totals'"),
        ("1001;00004", ROWS, "take it out of the file"),
        # A row of a customer may be cut off too, or lack the empty fields at its end.
        ("Total Energies;000", ROWS, r"add \"?total energies\"? to 'totals'"),
        ("Summe & Sohn;0000415000;5,00", ROWS, r"add \"?summe & sohn\"? to 'totals'"),
        ("*Stern GmbH;000", ROWS, r"add \"\*stern gmbh\" to 'totals'"),
        ("Summe;;1.457,57", ROWS.replace("0000415000", "Summe"), "take it out of the file"),
        # Whole lines of totals that are asked about say so too; they were said to have to go from the file.
        ("Summe;;1.457,57", f"Summe;;9,00;\n{ROWS}", "if no line with summe is one, add summe to 'totals'"),
    ],
)
def test_what_may_be_a_row_is_asked_and_refused_until_it_is_said(
    tmp_path: Path, footer: str, rows: str, told: str
) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"{NAMES}{rows}{footer}\n")
    (proposal,) = propose(file, QUICK)
    assert any(question.startswith("there is a line with more or fewer fields") for question in proposal.questions)
    (tmp_path / "f.yaml").write_text(text := declaration([(file, proposal)], tmp_path))
    assert re.search(told, text)
    with pytest.raises(AnalystError, match=rf"f\.csv, line {rows.count(chr(10)) + 2}"):
        query(Catalog.load(tmp_path / "f.yaml"), QueryRequest(source="f"), bounds=QUICK)


class Seen(Session):
    """A session that keeps what it is asked."""

    asked: "list[exp.Expr]"

    def run(self, statement: "exp.Expr", parameters: Parameters | None = None) -> list[Any]:
        self.asked = [*getattr(self, "asked", []), statement]
        return super().run(statement, parameters)


def test_all_texts_of_totals_are_looked_for_at_once(tmp_path: Path) -> None:
    """Each was looked for in each field of each row: a proposal for half a million rows took more than a minute."""
    (tmp_path / "f.csv").write_text("N1;N2\nText 1;Text 2\nSumme;12\n*** 7 lines;\n")
    source = Source(name="f", kind="csv", path="f.csv", text=TextFormat(delimiter=";"))
    with Seen(Place(tmp_path), [source]) as session:
        table = open_table(session, source, Demand((), ()))
        before = len(getattr(session, "asked", []))
        assert "summe" in usual_marks(session, table, (*USUAL, *WITH_NAMES))
    (statement,) = session.asked[before:]
    (lines,) = (one for one in statement.find_all(exp.Subquery) if one.alias == "lines")
    fields = [column.name for column in lines.this.args["where"].find_all(exp.Column)]
    assert sorted(fields) == ["N1", "N2"], "of each row, each field is looked at once"


@pytest.mark.parametrize(
    ("line", "totals", "told"),
    [
        ("1002;Summe", MARKS, True), ("1002;Summe;3,00", MARKS, True), ("Summe;;3,00", MARKS, False),
        (";Summe;3,00", MARKS, False), ("*** 2 lines", MARKS, False), ("1002;Summe;3,00;EUR", MARKS, False),
        (";;3,00", '[""]', False), (";", '[""]', False),
        ("Summit AG;kauf", '["Summ%"]', True), ("Summe 7;3,00", '["Summ%"]', False), ("Summe;Konto 7", MARKS, True),
        ("Summe;3,00 EUR", MARKS, False), ("Summe;EUR;3,00", MARKS, False), ("Summe;3,00;S", MARKS, False),
    ],
)  # fmt: skip
def test_a_row_that_may_be_cut_off_is_not_left_out_without_a_word(
    tmp_path: Path, line: str, totals: str, told: bool
) -> None:
    found = asked(declared(tmp_path, f"{NAMES}{ROWS}{line}\n", totals=totals))
    assert (found.totals["amount"], found.source_rows) == (Decimal("1457.57"), 2)
    said = (
        f"f leaves out as a total a line with fewer fields than there are names, which may be a row that was cut "
        f"off: {line}; such a row has to be completed in the file"
    )
    assert found.warnings == ((said,) if told else ())


def test_a_row_that_may_be_cut_off_in_its_key_is_not_left_out_without_a_word(tmp_path: Path) -> None:
    found = asked(declared(tmp_path, "HSL;BUKRS;WAERS\n1,00;1001;EUR\n3,00;\n", totals='[""]'))
    assert [claim.facts["lines"] for claim in found.claims if claim.kind == "left_out"] == [["3,00;"]]


def test_each_declaration_of_a_file_tells_of_what_it_leaves_out_itself(tmp_path: Path) -> None:
    """Two sources of one file each told the lines of both."""
    (tmp_path / "f.csv").write_text("k;n;amount\n1;x;1,5\n2;Summe\n", encoding="utf-8")
    both = [
        f"  {name}:\n    kind: csv\n    path: f.csv\n    text: {{delimiter: ';', decimal: ',', totals: {totals}}}\n"
        f"    dimensions: {{k: {{}}}}\n    measures: {{amount: {{decimals: 2}}}}\n"
        for name, totals in (("a", "[summe, total]"), ("b", "[summe, total, nil]"))
    ]
    (tmp_path / "sources.yaml").write_text("sources:\n" + "".join(both), encoding="utf-8")
    catalog = Catalog.load(tmp_path / "sources.yaml")
    found = compare(catalog, CompareRequest(source_a="a", source_b="b")).warnings
    assert [(one.facts["side"], one.facts["count"]) for one in found if one.kind == "left_out"] == [("a", 1), ("b", 1)]


def test_many_rows_that_may_be_cut_off_are_counted(tmp_path: Path) -> None:
    found = asked(declared(tmp_path, NAMES + ROWS + "".join(f"{at};Summe\n" for at in range(1000))))
    assert found.warnings[0].startswith("f leaves out as totals 1,000 lines with fewer fields")
    assert "0;Summe, 1;Summe, 2;Summe, 3;Summe, 4;Summe and 995 more; such a row" in found.warnings[0]


@pytest.mark.parametrize("text", ["Titel\n\n{}", "{}"])
def test_a_line_of_names_that_is_read_as_one_is_told_as_that(tmp_path: Path, text: str) -> None:
    """A title was told as a value without a name, and another delimiter with all names as the nearest to one."""
    told = (
        r"f\.csv has 'HSL' in field 3 of a line, which has no name|no column 'BUKRS' in its data; there are BUKRS,HKONT"
    )
    text = text.format(NAMES + "1001;0000415000;64;EUR\n")
    with pytest.raises(AnalystError, match=rf"({told}).*: the line of names is read as one name: look at 'delimiter'"):
        asked(declared(tmp_path, text if "Titel" in text else text.replace(";", ",")))


def test_another_name_of_the_only_column_is_told_as_that(tmp_path: Path) -> None:
    """Rows that are counted stand in no column, and yet the delimiter was told to be wrong."""
    declared(tmp_path, "Kunden\na\nb\n")
    yaml = tmp_path / "sources.yaml"
    yaml.write_text(
        "sources:\n  f:\n    kind: csv\n    path: f.csv\n    dimensions: {kunde: {}}\n"
        "    measures: {rows: {column: '*', aggregation: count}}\n"
    )
    with pytest.raises(AnalystError, match=r"no column 'kunde' in its data; did you mean 'Kunden'\?"):
        query(Catalog.load(yaml), QueryRequest(source="f", dimensions=["kunde"]), bounds=QUICK)
