"""Keys that are grouped by how they are spelled first: the same figures as when each row is brought into form."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, Source, TextFormat, compare, parse_format
from treadle.analyst.asking import alignment, spelled

Rows = Sequence[tuple[str, str, str]]

pytestmark = pytest.mark.usefixtures("one_engine")

KEYS = ["12", "0012", " 12", "000012", "0000012", "1_2", "+12", "1e1", "12.0", "-5", "0", "00", "A", "a ", "", "9" * 20]
DAYS = ["2024-01-31", "2024001", "001.2024", "1/2024", "202401", "17/2024", "x", ""]
AMOUNTS = ["1", "-2.50", "0.125", "1e2", "1.234,5", "12-", ""]
FORMS = ["alpha(6)", "trim, alpha(6)", "upper, alpha(6)", "alpha(20)", "trim, upper", "blank_as_null", ""]


def source(folder: Path, name: str, rows: Rows, forms: tuple[str, str], kind: str) -> Source:
    text = "k|p|v\n" + "".join("|".join(row) + "\n" for row in rows)
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    keys = tuple(Dimension(name=key, format=parse_format(form)) for key, form in zip("kp", forms, strict=True))
    measures = (Measure(name="v", aggregation=kind),)  # type: ignore[arg-type]
    form = TextFormat(delimiter="|")
    return Source(name=name, kind="csv", path=f"{name}.csv", text=form, dimensions=keys, measures=measures)


def told(folder: Path, sources: Sequence[Source], monkeypatch: pytest.MonkeyPatch, first: bool) -> tuple[Any, str]:
    """What a comparison finds, or how it is refused, and its statements."""
    monkeypatch.setattr(spelled, "LARGE", 0 if first else 1 << 60)
    try:
        request = CompareRequest(source_a="a", source_b="b", dimensions=["k", "p"])
        found = compare(Catalog(sources, folder), request).to_dict(explain=True)
    except Exception as error:
        return (type(error), str(error)), ""
    return {key: value for key, value in found.items() if key != "made"}, str(found)


def same(found: Any) -> Any:
    """What a comparison says, without the statements that prove it."""
    if isinstance(found, dict):
        return {key: same(value) for key, value in found.items() if key not in ("sql", "claims", "proof", "made")}
    return [same(item) for item in found] if isinstance(found, list) else found


ROW = st.tuples(st.sampled_from(KEYS), st.sampled_from(DAYS), st.sampled_from(AMOUNTS))


@settings(max_examples=deep(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(ROW, min_size=1, max_size=8),
    st.sampled_from(FORMS),
    st.sampled_from(["fiscal_period", ""]),
    st.sampled_from(["sum", "avg", "min", "max", "count"]),
)
def test_both_ways_say_the_same(tmp_path: Path, a: Rows, b: Rows, form: str, period: str, kind: str) -> None:
    forms = (form, period)
    # Twice each, so that spellings come again.
    sources = [source(tmp_path, "a", [*a, *a], forms, kind), source(tmp_path, "b", [*b, *b], forms, kind)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        (one, _), (other, _) = (told(tmp_path, sources, monkeypatch, first) for first in (True, False))
    assert same(one) == same(other)


@pytest.mark.parametrize(("times", "expected"), [(3, True), (1, False)])
def test_the_first_rows_say_which_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, expected: bool
) -> None:
    rows = [(f"{number:06}", "202401", "1.00") for number in range(50)] * times
    sources = [source(tmp_path, name, rows, ("alpha(6)", ""), "sum") for name in "ab"]
    used: list[object] = []
    regrouped = spelled.regrouped

    def noticed(*arguments: Any) -> Any:
        used.append(arguments)
        return regrouped(*arguments)

    monkeypatch.setattr(alignment, "regrouped", noticed)
    found, _ = told(tmp_path, sources, monkeypatch, True)
    assert bool(used) == expected
    assert found["summary"]["matches"] == 50


def test_each_side_spells_its_days_in_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = source(tmp_path, "a", [("7", "01/02/2024", "1.00")] * 3, ("alpha(4)", "date(DD/MM/YYYY)"), "sum")
    b = source(tmp_path, "b", [("0007", "02/01/2024", "1.00")] * 3, ("alpha(4)", "date(MM/DD/YYYY)"), "sum")
    found, _ = told(tmp_path, [a, b], monkeypatch, True)
    assert (found["summary"]["matches"], found["summary"]["total_rows"]) == (1, 1)
