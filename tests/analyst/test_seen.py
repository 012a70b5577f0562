"""What one would not see of a value is shown alike in check lines, tables, pages and sentences; and none is lost."""

from html import escape
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, Source, compare
from treadle.analyst.checks import Check, CheckFile, History, Known, run_checks
from treadle.analyst.checks.page import checks_page
from treadle.analyst.showing.export_page import page

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

UNSEEN = [
    ("", "''"),
    ("x ", "'x '"),
    ("x\u200b", r"'x\u200b'"),
    ("\u202ex", r"'\u202ex'"),
    ("a\nb", r"'a\nb'"),
    ("x\u3164", r"'x\u3164'"),
    ("(none)", "'(none)'"),
    ("''", "\"''\""),
    (None, "(none)"),
]


def two(place: Path, key: str | None) -> list[Source]:
    sources = []
    for name, amount in (("a", "1.00"), ("b", "9000.00")):
        write_csv(place / f"{name}.csv", ("account", "amount"), [(key, amount), ("x", "1.00")])
        sources.append(
            Source(
                name=name,
                kind="csv",
                path=f"{name}.csv",
                dimensions=(Dimension(name="account"),),
                measures=(Measure(name="amount", decimals=2),),
            )
        )
    return sources


@pytest.mark.parametrize(("key", "told"), UNSEEN)
def test_a_check_names_a_key_as_one_can_see_it(tmp_path: Path, key: str | None, told: str) -> None:
    asked = CompareRequest(source_a="a", source_b="b", dimensions=["account"])
    known = (Known({"account": (key,)}, "is late"),)
    sources = two(tmp_path, key)

    def run(*checks: Check) -> Any:
        declared = CheckFile(path=tmp_path / "checks.yaml", sources=tmp_path, history=tmp_path, checks=checks)
        return run_checks(
            declared, catalog=Catalog(sources, tmp_path), history=History(tmp_path / "h.db"), bounds=QUICK
        )

    run(Check(name="c", request=asked))
    write_csv(tmp_path / "b.csv", ("account", "amount"), [(key, "1.00"), ("x", "1.00")])
    gone = run(Check(name="c", request=asked, known=known))
    verdict = gone.verdicts[0]
    assert verdict.sentence.endswith(f"gone: 1 account ({told})")
    assert verdict.notes == (f"nothing differs any more at account {told} (is late): take it out of 'known'",)
    assert f"<bdi>account {escape(told)}</bdi>" in checks_page(gone)


@pytest.mark.parametrize(("key", "told"), UNSEEN)
def test_a_page_names_a_key_as_one_can_see_it(tmp_path: Path, key: str | None, told: str) -> None:
    found = compare(Catalog(two(tmp_path, key), tmp_path), CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
    assert f"is 8,999.00 at account {told} (major_diff)" in found.interpretation
    shown = page(found)
    assert f'<th scope="row" class="k"><span><bdi>{escape(told)}</bdi></span></th>' in shown
    assert f"{escape(told)}: -8,999.00" in shown


def test_a_condition_names_a_value_as_one_can_see_it(tmp_path: Path) -> None:
    asked = CompareRequest(source_a="a", source_b="b", dimensions=[], filters={"account": "x\u200b"})  # type: ignore[arg-type]
    found = compare(Catalog(two(tmp_path, "x\u200b"), tmp_path), asked, bounds=QUICK)
    assert found.filters == (r"account = 'x\u200b'",)
