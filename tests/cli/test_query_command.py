"""`treadle query`, and what `--where` takes."""

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest

from treadle.analyst import Filter
from treadle.cli.conditions import filters_of


def test_totals_groups_and_files(treadle: Any) -> None:
    found = treadle("query", "fi_reporting", "--where", "company=1001", "--where", "period between 202401 and 202402")
    assert found.code == 0
    assert "total" not in found.out.splitlines()[2]
    grouped = treadle(
        "query", "fi_reporting", "--by", "period", "--where", "period in 202401, 202402", "--order", "amount desc",
        "--csv", "rows.csv", "--json",
    )  # fmt: skip
    data = json.loads(grouped.out)
    assert (grouped.code, [sorted(row) for row in data["rows"]]) == (0, [["amount", "currency", "period"]] * 6)
    assert [(one["currency"], one["amount"]) for one in data["totals_by_currency"]] == [
        (code, f"{sum(Decimal(row['amount']) for row in data['rows'] if row['currency'] == code):f}")
        for code in ("EUR", "GBP", "USD")
    ]
    lines = (Path(treadle.folder) / "rows.csv").read_text().splitlines()
    assert lines == ["period,currency,amount", *(",".join(row.values()) for row in data["rows"])]
    plain = treadle("query", "fi_reporting", "--by", "period", "--limit", "2")
    assert "The first 2 of 36 rows; the total is over all." in plain.out
    assert "\ntotal " in plain.out


def test_a_file_that_is_asked_for_as_a_source_is_told_to_be_declared(treadle: Any) -> None:
    (Path(treadle.folder) / "b 1.csv").write_text("account,amount\n100,1.00\n")
    done = treadle("query", "b 1.csv")
    assert done.code == 2
    assert "treadle sources init 'b 1.csv' --output sources.yaml" in done.err
    assert "sources init" not in treadle("query", "c.csv").err


def test_rows_that_a_mapping_splits_are_not_told_as_rows_of_the_source(treadle: Any) -> None:
    for name, text in [
        ("old.csv", "account,amount\n100,10.00\n200,5.00\n"),
        ("accounts.csv", "old,new,share\n100,4100,0.25\n100,4200,0.75\n200,4200,1\n"),
        ("sources.yaml", SPLIT),
    ]:
        (Path(treadle.folder) / name).write_text(text)
    asked = ("query", "old", "--by", "account", "--sources", "sources.yaml")
    assert "3 rows of old, each part counted of a row that a mapping splits\n" in treadle(*asked).out
    assert treadle(*asked, "--where", "account=4100").out.splitlines()[-1].startswith("1 row of old, each part")
    assert treadle("query", "accounts", "--sources", "sources.yaml").out.endswith("\n3 rows of accounts\n")


SPLIT = """\
sources:
  old:
    kind: csv
    path: old.csv
    dimensions: {account: {mapping: {source: accounts, from: old, to: new, share: share}}}
    measures: {amount: {decimals: 2}}
  accounts: {kind: csv, path: accounts.csv, dimensions: {old: {}, new: {}}, measures: {share: {}}}
"""


def test_what_is_wrong_is_told(treadle: Any) -> None:
    for arguments, told in [
        (["fi_reportin"], "fi_reporting"), (["fi_reporting", "--by", "compny"], "company"),
        (["fi_reporting", "--where", "company"], "cannot be read"),
        (["fi_reporting", "--where", "period between 202401"], "two values with 'and' between them"),
        (["fi_reporting", "--where", "company is null 5"], "nothing follows 'is null'"),
        (["fi_reporting", "--csv", "x.parquet"], ""),
        (["fi_reporting", "--csv", "/nowhere/x.csv"], "there is no folder"),
    ]:  # fmt: skip
        found = treadle("query", *arguments)
        assert (found.code != 0) or arguments[1:2] == ["--csv"], arguments
        assert told in found.err
        assert "Traceback" not in found.err


def test_words_on_compare(treadle: Any) -> None:
    by_words = treadle(
        "compare", "fi_reporting", "consolidation_mart", "--by", "company", "--json", "--where",
        "period between 202401 and 202402", "--where", "account like '8%'", "--where", "company is not null",
    )  # fmt: skip
    found = json.loads(by_words.out)
    assert found["filters"] == ["period between ['202401', '202402']", "account like 8%", "company is not null"]


CONDITIONS = [
    ("company=1001", "company", "=", "1001"),
    ("company = 1001 ", "company", "=", "1001"),
    ("company=1001,1002", "company", "in", ["1001", "1002"]),
    ("company!=1001, 1002", "company", "not in", ["1001", "1002"]),
    ("company<=1001", "company", "<=", "1001"),
    ("name='Miller, Sons'", "name", "=", "Miller, Sons"),
    ('name="a,b",c', "name", "in", ["a,b", "c"]),
    ("name=", "name", "=", ""),
    ("company code between 1 and 2", "company code", "between", ["1", "2"]),
    ("name between 'a and b' and c", "name", "between", ["a and b", "c"]),
    ("day BETWEEN 2024-01-01 AND 2024-01-31", "day", "between", ["2024-01-01", "2024-01-31"]),
    ("text like a=b%", "text", "like", "a=b%"),
    ("text like '% a,b'", "text", "like", "% a,b"),
    ("x in 1", "x", "in", ["1"]),
    ("x not  in 1,2", "x", "not in", ["1", "2"]),
    ("x is null", "x", "is null", None),
    ("x IS NOT NULL", "x", "is not null", None),
    ("x=is null", "x", "=", "is null"),
    ("Sold in=EU", "Sold in", "=", "EU"),
    ("x=a in b", "x", "=", "a in b"),
]


@pytest.mark.parametrize(("text", "dimension", "op", "value"), CONDITIONS, ids=[case[0] for case in CONDITIONS])
def test_conditions(text: str, dimension: str, op: str, value: Any) -> None:
    (found,) = filters_of("--where", [text])
    assert (found.dimension, found.op, found.value) == (dimension, op, value)


PIECES = (
    "1001",
    "a",
    ",",
    "'",
    "\\",
    " and ",
    "(",
    "[",
    "=",
    "<",
    "é",
    "\n",
    "\u202e",
    " ",
    "O'Neil",
    "-",
    "1,5",
    "None",
)


@pytest.mark.parametrize("op", ["=", "!=", "<", "like", "under", "in", "not in", "between"])
def test_a_condition_as_it_is_shown_can_be_given_back(op: str) -> None:
    """Of `a,b` two values were read, of `in ['a', None]` the text None, and of a backslash two."""
    chance = Random(op)
    for _ in range(300):
        texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
        several = [*texts, *([None] if chance.random() < 0.3 else [])]
        value = [texts[0], texts[-1]] if op == "between" else several if op.endswith("in") else texts[0]
        ends = chance.choice(["both", "left", "right", "neither"]) if op == "between" else "both"
        asked = Filter.model_validate({"dimension": "x", "op": op, "value": value, "inclusive": ends})
        assert filters_of("--where", [str(asked)]) == [asked], str(asked)


@pytest.mark.parametrize("op", ["ytd", "qtd"])
@pytest.mark.parametrize("day", ["2024-01-01", "2024-02-29", "2024-05-31"])
@pytest.mark.parametrize("ends", ["both", "right"])
def test_a_set_of_days_as_it_is_shown_has_its_last_day_to_its_end(op: str, day: str, ends: str) -> None:
    """It was shown as a range that ends where that day begins."""
    asked = Filter.model_validate({"dimension": "x", "op": op, "value": day, "inclusive": ends})
    (found,) = filters_of("--where", [str(asked)])
    assert (found.value, found.to_the_end) == (asked.value, asked.to_the_end) != (asked.value, asked)


@pytest.mark.parametrize("text", ["", "x", "=1", "x between 1", "x between and 2", "x like", "x is null y", "x in"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="cannot be read"):
        filters_of("--where", [text])


def test_tables_tell_values_apart_that_look_alike(treadle: Any) -> None:
    """An empty key, none, and one with an invisible mark were three cells that looked the same."""
    (treadle.folder / "alike.csv").write_text(
        'k,t,v\n"",p,1\n,p,2\nx,p,4\nx\u200b,"",8\n"(none)",,16\n', encoding="utf-8"
    )
    (treadle.folder / "other.csv").write_text("k,t,v\ny,p,1\n", encoding="utf-8")
    declared = "{kind: csv, path: %s.csv, dimensions: {k: {}, t: {}}, measures: {v: {}}}"
    lines = [f"  {name}: {declared % name}" for name in ("alike", "other")]
    (treadle.folder / "sources.yaml").write_text("sources:\n" + "\n".join(lines) + "\n")
    keys = ["''", "(none)", "x", r"'x\u200b'", "'(none)'"]
    asked = treadle("query", "alike", "--by", "k", "--sources", "sources.yaml").out
    assert {line.split()[0] for line in asked.splitlines()[3:8]} == set(keys)
    compared = treadle("compare", "alike", "other", "--by", "k", "--sources", "sources.yaml").out
    assert {line.split()[0] for line in compared.splitlines()[3:9]} == {*keys, "y"}
    for key, amount in zip(keys, (1, 2, 4, 8, 16), strict=True):
        behind = treadle("drill", "alike", "other", "--key", f"k={key}", "--sources", "sources.yaml", "--json").out
        assert json.loads(behind)["a"]["total"] == f"{amount}.00", key
    drilled = treadle("drill", "alike", "other", "--key", "k=x\u200b", "--sources", "sources.yaml").out
    assert any(line.split()[-3:] == [r"'x\u200b'", "''", "8"] for line in drilled.splitlines())


def test_a_key_with_two_values_of_a_dimension_is_refused(treadle: Any) -> None:
    """The first was dropped without a word."""
    given = ["--key", "account=800200", "--key", "Account=710300"]
    found = treadle("drill", "fi_reporting", "consolidation_mart", *given)
    assert (found.code, "Account is given twice, and a key has one value of it" in found.err) == (2, True)


def test_a_condition_on_a_measure_is_told_as_that(treadle: Any) -> None:
    """It was asked whether 'account' was meant."""
    found = treadle("query", "fi_reporting", "--where", "amount > 5")
    assert found.code == 2
    assert "'amount' is a measure, and no dimension, in 'fi_reporting'; dimensions are: account, company" in found.err
