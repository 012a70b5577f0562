"""Finding what was probably meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.tools import did_you_mean, nearest

SOURCES = ["bpc_reporting", "consolidation_mart", "fi_reporting"]


@pytest.mark.parametrize(
    ("wanted", "available", "found"),
    [
        ("fi_reports", SOURCES, "fi_reporting"),
        ("bpc", SOURCES, "bpc_reporting"),
        ("FI Reporting", SOURCES, "fi_reporting"),
        ("consolidation-mart", SOURCES, "consolidation_mart"),
        ("fi_reporting_table", SOURCES, "fi_reporting"),
        ("weather", SOURCES, None),
        ("PST", ["MST", "EST"], None),
        ("rep", ["report_a", "report_b"], None),
        ("", SOURCES, None),
        (202402, [202401], "202401"),
        ("x", [], None),
        ("betrag", ["k", "Betrag", "Betrag "], "Betrag"),
        ("betrag ", ["k", "Betrag", "Betrag "], "Betrag "),
        ("be trag", ["k", "Betrag", "Betrag "], "Betrag"),
    ],
)
def test_nearest(wanted: object, available: list[object], found: str | None) -> None:
    assert nearest(wanted, available) == found


def test_did_you_mean() -> None:
    assert did_you_mean("a") == "; did you mean 'a'?"
    assert did_you_mean(None) == ""


@given(wanted=st.text(), available=st.lists(st.text(), max_size=20))
def test_nearest_is_one_of_the_available(wanted: str, available: list[str]) -> None:
    assert nearest(wanted, available) in {None, *available}


@given(available=st.lists(st.from_regex(r"[a-z]{3,12}", fullmatch=True), min_size=1, unique=True), index=st.integers(0))
def test_a_name_in_another_spelling_is_found(available: list[str], index: int) -> None:
    wanted = available[index % len(available)]
    assert nearest(wanted.upper() + "_", available) == wanted
