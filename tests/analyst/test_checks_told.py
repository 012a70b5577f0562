"""What checks say of what is known, and of what has changed, is true of what was asked."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from treadle.analyst import AnalystError, Filter
from treadle.analyst.checks import History, Report, read_checks, run_checks

pytestmark = pytest.mark.usefixtures("one_engine")

SOURCES = """\
sources:
  a:
    kind: csv
    path: a.csv
    dimensions: {account: {format: alpha(10)}, period: {type: integer}}
    measures: {amount: {decimals: 2, unit: EUR}, pieces: {unit: pieces}}
  b:
    kind: csv
    path: b.csv
    dimensions: {konto: {column: account}, period: {type: integer}}
    measures: {gross: {column: amount, decimals: 2, unit: EUR}, net: {decimals: 2, unit: EUR}, pieces: {unit: pieces}}
"""
A = "account,period,amount,pieces\n0000710300,1,10,1\n0000800100,1,5,2\n"
B = "account,period,amount,net,pieces\n0000800100,1,5,7,2\n0000710300,2,1,1,1\n"
CHECK = """\
checks:
  x:
    compare: [a, b]
    by: [account]
    names: {{account: konto, amount: {amount}}}
    measures: {measures}
    where: {{period: 1}}
    known:
      - {{key: {{account: {known}}}, why: late}}
"""


def run(
    place: Path,
    known: str = "0000710300",
    measures: str = "[amount]",
    amount: str = "gross",
    sources: str = SOURCES,
    filters: tuple[Filter, ...] = (),
) -> Report:
    for name, text in [("a.csv", A), ("b.csv", B), ("sources.yaml", sources)]:
        (place / name).write_text(text)
    (place / "checks.yaml").write_text(CHECK.format(known=known, measures=measures, amount=amount))
    history = History(place / "h.db")
    return run_checks(
        read_checks(place / "checks.yaml"), history=history, now=datetime(2024, 1, 2, tzinfo=UTC), filters=filters
    )


def notes(report: Report) -> list[str]:
    return [note for verdict in report.verdicts for note in verdict.notes]


@pytest.mark.parametrize("known", ["0000710300", "'710300'", "[000710300, '1']"])
def test_what_is_known_may_be_spelled_as_the_dimension_may_be(tmp_path: Path, known: str) -> None:
    report = run(tmp_path, known)
    assert (report.outcome, notes(report)) == ("passed", [])


@pytest.mark.parametrize("known", ["''", "' '", "null", "['', '800100']"])
@pytest.mark.parametrize("blank", ["", '""', " "])
def test_a_known_blank_is_no_value_where_the_format_makes_it_none(tmp_path: Path, known: str, blank: str) -> None:
    """It was nowhere: keys are told without a value there."""
    for name, amount in (("a", 10), ("b", 1)):
        (tmp_path / f"{name}.csv").write_text(f"account,amount\n{blank},{amount}\n800100,5\n")
    (tmp_path / "sources.yaml").write_text("""\
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {}}, measures: {amount: {}}}
  b: {kind: csv, path: b.csv, dimensions: {account: {format: blank_as_null}}, measures: {amount: {}}}
""")
    (tmp_path / "checks.yaml").write_text(
        f"checks: {{x: {{compare: [a, b], by: [account], known: [{{key: {{account: {known}}}, why: late}}]}}}}\n"
    )
    (verdict,) = run_checks(read_checks(tmp_path / "checks.yaml")).verdicts
    assert (verdict.known, verdict.notes) == (1, ())


def test_a_known_key_that_is_nowhere_is_said_to_be_nowhere(tmp_path: Path) -> None:
    """It was told that nothing differs there any more."""
    report = run(tmp_path, "0071O300")
    assert report.outcome == "failed"
    assert notes(report) == [
        "nothing that is compared has account 0071O300 (late): take it out of 'known', or spell it as keys are told"
    ]
    assert "nothing differs any more at account 800100" in notes(run(tmp_path, "800100"))[0]


def test_what_differs_by_another_measure_is_not_to_be_taken_out(tmp_path: Path) -> None:
    report = run(tmp_path, "800100", measures="[pieces, amount]", amount="net")
    assert [verdict.known for verdict in report.verdicts] == [0, 1]
    assert notes(report) == []


def test_what_differs_in_the_period_of_the_file_is_not_to_be_taken_out(tmp_path: Path) -> None:
    elsewhere = (Filter(dimension="period", value=2),)
    assert notes(run(tmp_path, "800100", filters=elsewhere)) == []


CALLED = """\
checks:
  x:
    compare: [a, b]
    by: [period]
    names: {account: konto, amount: gross}
    measures: {gross: {absolute: 4}}
    where: {account: 800100}
"""


@pytest.mark.parametrize("name", ["account", "konto", "KONTO"])
def test_what_takes_the_place_of_a_condition_may_be_named_as_the_second_source_names_it(
    tmp_path: Path, name: str
) -> None:
    """Both held: of the two accounts that were asked for, the one of the file alone was compared, and passed."""
    run(tmp_path)
    (tmp_path / "checks.yaml").write_text(CALLED)
    asked = (Filter(dimension=name, op="in", value=["710300", "800100"]),)
    (verdict,) = run_checks(read_checks(tmp_path / "checks.yaml"), filters=asked).verdicts
    assert verdict.comparison is not None
    assert verdict.comparison.filters == (f"{name} in ['710300', '800100']",)
    assert verdict.comparison.summary.total_rows == 2


def test_a_measure_with_thresholds_may_be_named_as_the_second_source_names_it(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "checks.yaml").write_text(CALLED)
    for name in "ab":
        text = (tmp_path / f"{name}.csv").read_text()
        (tmp_path / f"{name}.csv").write_text(text.replace("800100,1,5", "800100,1,9") if name == "b" else text)
    (verdict,) = run_checks(read_checks(tmp_path / "checks.yaml")).verdicts
    assert (verdict.outcome, verdict.measure) == ("passed", "amount")
    assert verdict.comparison is not None
    assert verdict.comparison.summary.total_diff == -4


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": "net"},
        {"sources": SOURCES.replace("amount: {decimals: 2", "amount: {sign: -1, decimals: 2", 1)},
        {"sources": SOURCES.replace("format: alpha(10)", "format: 'trim, alpha(10)'")},
        {"sources": SOURCES.replace("path: a.csv", "path: a.csv\n    text: {thousands: ' '}")},
        {"sources": SOURCES.replace("path: a.csv", "path: a.csv\n    text: {totals: ['0000800100']}")},
    ],
)
def test_a_check_of_other_columns_is_not_held_against_the_one_before(tmp_path: Path, changed: dict[str, str]) -> None:
    """Its differences were told as what had changed in the data."""
    run(tmp_path)
    first = run(tmp_path, **changed).verdicts[0].changes
    assert first is not None
    assert "first run that asks just this" in first.sentence
    again = run(tmp_path, **changed).verdicts[0].changes
    assert again is not None
    assert "nothing has changed" in again.sentence


LOOKED_UP = """\
sources:
  a:
    kind: csv
    path: a.csv
    dimensions: {company: {}, account: {}, currency: {}, period: {}, posted: {}}
    measures:
      amount: {currency: currency, conversion: {to: EUR, source: rates, currency: code, rate: rate, on: [period]}}
  b:
    kind: csv
    path: b.csv
    dimensions: {company: {}, account: {mapping: {source: charts, from: old, to: new}}}
    measures: {amount: {unit: EUR}}
  rates:
    kind: csv
    path: rates.csv
    dimensions: {code: {}, period: {}, kind: {}}
    measures: {rate: {}, other: {}, n: &rows {column: "*", aggregation: count}}
    default_filters: {kind: M}
  charts: {kind: csv, path: charts.csv, dimensions: {old: {}, new: {}, newer: {}}, measures: {n: *rows}}
  groups: {kind: csv, path: groups.csv, dimensions: {group: {}, member: {}, wider: {}}, measures: {n: *rows}}
hierarchies:
  owners: {of: company, source: groups}
  results: {of: account, groups: {Sales: ["1", "2"], Costs: ["3"]}}
"""
FILES = {
    "a.csv": "company,account,currency,period,posted,amount\nX,1,USD,1,2,10\nY,2,USD,2,2,4\n",
    "b.csv": "company,account,amount\nX,1,20\nY,2,8\n",
    "rates.csv": "code,period,kind,rate,other\nUSD,1,M,2,3\nUSD,2,M,2,3\nUSD,1,B,5,5\nUSD,2,B,5,5\n",
    "charts.csv": "old,new,newer\n1,1,2\n2,2,1\n",
    "groups.csv": "group,member,wider\nAll,X,All\nAll,Y,All\n",
}
UNDER = """\
checks:
  x:
    compare: [a, b]
    by: [company]
    where: [{dimension: account, op: under, value: Sales}, {dimension: company, op: under, value: All}]
"""


def looked_up(place: Path, before: str = "", after: str = "") -> str:
    """What a check of looked up values says of changes, with one thing declared otherwise."""
    assert before in LOOKED_UP
    declared = LOOKED_UP.replace(before, after, 1) if before else LOOKED_UP
    for name, text in [*FILES.items(), ("sources.yaml", declared), ("checks.yaml", UNDER)]:
        (place / name).write_text(text)
    (verdict,) = run_checks(read_checks(place / "checks.yaml"), history=History(place / "h.db")).verdicts
    assert verdict.changes is not None, verdict.why
    return verdict.changes.sentence


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('Sales: ["1", "2"]', 'Sales: ["1"]'),
        ("group: {}", "group: {column: wider}"),
        ("account: {}", "account: {column: period}"),
        ("kind: M", "kind: B"),
        ("rate: {}", "rate: {column: other}"),
        ("new: {}", "new: {column: newer}"),
        ("period: {}", "period: {column: posted}"),
        ("path: rates.csv", "path: rates.csv\n    text: {thousands: ' '}"),
    ],
)
def test_a_check_of_other_groups_rates_or_conditions_is_not_held_against_the_one_before(
    tmp_path: Path, before: str, after: str
) -> None:
    """What stands behind a condition, a rate or a mapping was declared otherwise, and told as a change of the data."""
    assert looked_up(tmp_path) == ""
    assert "first run that asks just this" in looked_up(tmp_path, before, after)
    assert "nothing has changed" in looked_up(tmp_path, before, after)


def test_another_group_or_table_that_nothing_asks_for_is_the_same_check(tmp_path: Path) -> None:
    looked_up(tmp_path)
    assert "nothing has changed" in looked_up(tmp_path, "newer: {}", "newer: {format: trim}")


def test_other_words_about_the_columns_are_the_same_check(tmp_path: Path) -> None:
    run(tmp_path)
    told = SOURCES.replace("account: {format", "account: {description: of the ledger, format")
    changes = run(tmp_path, sources=told).verdicts[0].changes
    assert changes is not None
    assert "nothing has changed" in changes.sentence


@pytest.mark.parametrize(
    "line", ["tolerance: 1 %", "tolerance: {absolute: 1 %}", "tolerance: {materiality: 5%}",
             "known: [{key: {account: 1}, why: x, up_to: 1 %}]", "measures: {amount: 1 %}"],
)  # fmt: skip
def test_a_share_is_no_amount(tmp_path: Path, line: str) -> None:
    """1 % was read as an amount of 0.01."""
    (tmp_path / "checks.yaml").write_text(f"checks:\n  x:\n    compare: [a, b]\n    {line}\n")
    with pytest.raises(AnalystError, match=r"line 4: .* is a share, and an amount is needed"):
        read_checks(tmp_path / "checks.yaml")


def test_a_known_day_may_be_spelled_as_a_source_declares_it(tmp_path: Path) -> None:
    def told(day: str, theirs: str = "YYYYMMDD") -> tuple[str, tuple[str, ...]]:
        (tmp_path / "a.csv").write_text("day,amount\n01.02.2024,5\n03.02.2024,1\n")
        spelled = {"YYYYMMDD": "20240203", "MM/DD/YYYY": "02/03/2024", "MM.DD.YYYY": "02.03.2024"}[theirs]
        (tmp_path / "b.csv").write_text(f"day,amount\n{spelled},1\n")
        sources = "".join(
            f"  {name}: {{kind: csv, path: {name}.csv, dimensions: {{day: {{format: date({form})}}}}, "
            f"measures: {{amount: {{}}}}}}\n"
            for name, form in (("a", "DD.MM.YYYY"), ("b", theirs))
        )
        (tmp_path / "sources.yaml").write_text(f"sources:\n{sources}")
        (tmp_path / "checks.yaml").write_text(
            "checks:\n  x:\n    compare: [a, b]\n    by: [day]\n"
            f"    known: [{{key: {{day: {day}}}, why: late}}]\n  y: {{compare: [a, a], by: [day]}}\n"
        )
        first, second = run_checks(read_checks(tmp_path / "checks.yaml")).verdicts
        assert second.outcome == "passed"
        return first.outcome, (*first.why, *first.notes)

    for day in ("01.02.2024", "2024-02-01", "20240201"):
        assert told(day) == ("passed", ())
    assert told("02.02.2024")[0] == "failed"
    # Of two ways to read it, none is chosen; the other check is run all the same.
    outcome, (why,) = told("01.02.2024", "MM.DD.YYYY")
    assert (outcome, "write it as YYYY-MM-DD" in why) == ("not_run", True)


def test_a_check_whose_between_can_hold_of_no_row_says_why_it_could_not_be_judged(tmp_path: Path) -> None:
    backwards = Filter(dimension="period", op="between", value=[2, 1])
    (verdict,) = run(tmp_path, filters=(backwards,)).verdicts
    assert verdict.outcome == "not_run"
    assert verdict.why == (
        "neither a nor b has a row that passes the filters: no value is period between [2, 1]: write the lower end "
        "first, and let both belong to it if they are the same",
    )


def test_totals_of_which_one_is_empty_are_not_equal(tmp_path: Path) -> None:
    for name, pounds in (("a", ""), ("b", "0.00")):
        (tmp_path / f"{name}.csv").write_text(f"account,currency,amount\n1,EUR,5.00\n2,GBP,{pounds}\n")
    declared = "kind: csv, dimensions: {account: {}, currency: {}}, measures: {amount: {currency: currency}}"
    sides = "".join(f"  {name}: {{path: {name}.csv, {declared}}}\n" for name in "ab")
    (tmp_path / "sources.yaml").write_text(f"sources:\n{sides}")
    (tmp_path / "checks.yaml").write_text("checks: {x: {compare: [a, b]}}\n")
    (verdict,) = run_checks(read_checks(tmp_path / "checks.yaml")).verdicts
    assert verdict.sentence == "2 of 2 keys match (100 %); the totals match, what is empty counting as zero"


def test_a_currency_that_one_side_has_today_asks_nothing_else_where_it_is_a_key(tmp_path: Path) -> None:
    """It was called the first run of amounts in several currencies, and what had changed was not told."""
    declared = "kind: csv, dimensions: {account: {}, currency: {}}, measures: {amount: {currency: currency}}"
    sides = "".join(f"  {name}: {{path: {name}.csv, {declared}}}\n" for name in "ab")
    (tmp_path / "sources.yaml").write_text(f"sources:\n{sides}")
    (tmp_path / "checks.yaml").write_text("checks: {x: {compare: [a, b], by: [account]}}\n")
    (tmp_path / "b.csv").write_text("account,currency,amount\n1,EUR,5\n2,USD,7\n")
    said = []
    for rows in ("1,EUR,5\n2,USD,7\n", "1,EUR,5\n"):
        (tmp_path / "a.csv").write_text(f"account,currency,amount\n{rows}")
        (verdict,) = run_checks(read_checks(tmp_path / "checks.yaml"), history=History(tmp_path / "h.db")).verdicts
        assert verdict.changes is not None
        said.append(verdict.changes.sentence)
    assert said[0] == ""
    assert said[1].endswith("new: 1 key (2 USD)")
