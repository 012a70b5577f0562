"""The main question on the sample sources, and the sample itself."""

import hashlib
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from treadle.analyst import Catalog, CompareRequest, QueryRequest, compare, query, sample_catalog

MAIN = {
    "source_a": "fi_reporting",
    "source_b": "consolidation_mart",
    "measures": ["amount"],
    "filters": {"company": "1001", "period": "202401"},
}


def test_main_question(sample: Catalog) -> None:
    found = compare(sample, CompareRequest(**MAIN, dimensions=["company", "period"]))
    summary = found.summary
    assert str(summary.total_source_a) == "1500000.00"
    assert str(summary.total_source_b) == "1492000.00"
    assert str(summary.total_diff) == "8000.00"
    assert (summary.total_rows, summary.major_differences, summary.match_rate) == (1, 1, 0.0)
    (row,) = found.top_differences
    assert row.key == {"company": "1001", "period": "202401"}
    assert row.status == "major_diff"
    assert row.percentage_diff == 0.5333
    assert row.reason == "8,000.00 EUR is at or above the materiality of 5,000 EUR, though 0.53 % of A is below 1 %"
    assert "fi_reporting has 1,500,000.00 EUR and consolidation_mart has 1,492,000.00 EUR" in found.interpretation
    assert "higher by 8,000.00 EUR: a major difference" in found.interpretation
    assert found.warnings == []


def test_main_question_by_account_tells_the_story(sample: Catalog) -> None:
    found = compare(sample, CompareRequest(**MAIN))
    assert found.dimensions == ("account", "currency")
    story = {row.key["account"]: (row.status, row.diff) for row in found.top_differences}
    assert story == {
        "800200": ("minor_diff", Decimal("4750.02")),
        "710300": ("missing_in_b", Decimal("3250.00")),
        "415000": ("minor_diff", Decimal("-0.02")),
    }
    assert [finding.kind for finding in found.warnings] == ["absent"]


def test_late_posting_is_found_in_the_next_period(sample: Catalog) -> None:
    found = compare(sample, CompareRequest(**(MAIN | {"filters": {"company": "1001", "account": "800200"}})))
    assert {row.key["period"]: row.diff for row in found.top_differences} == {
        "202401": Decimal("4750.02"),
        "202402": Decimal("-4750.02"),
    }
    assert "The totals are equal" not in found.interpretation or "offset each other" in found.interpretation


def test_bpc_is_spelled_differently_and_still_meets(sample: Catalog) -> None:
    found = compare(sample, CompareRequest(source_a="fi_reporting", source_b="bpc_reporting"))
    assert found.summary.total_rows == 1200
    assert found.summary.missing_in_a == 0
    assert found.summary.missing_in_b == 20
    assert found.summary.major_differences + found.summary.minor_differences == 4


def test_reclassification_is_hidden_in_the_total(sample: Catalog) -> None:
    request = CompareRequest(
        source_a="fi_reporting",
        source_b="bpc_reporting",
        dimensions=["account"],
        filters={"company": "1002", "period": "202406"},
    )
    found = compare(sample, request)
    assert found.summary.total_status == "match"
    assert found.summary.total_absolute_diff == Decimal("37500.00")
    assert "agree only because differences offset each other" in found.interpretation


def test_sample_has_about_ten_thousand_rows_each(sample: Catalog) -> None:
    for name in sample.sources:
        rows = query(sample, QueryRequest(source=name)).source_rows
        assert 9_000 < rows < 11_000


def _digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_sample_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    sample_catalog(tmp_path / "one")
    sample_catalog(tmp_path / "two")
    assert _digests(tmp_path / "one") == _digests(tmp_path / "two")
    assert len(_digests(tmp_path / "one")) == 4


def test_processes_may_write_the_sample_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from treadle.analyst import *; "
        "c = sample_catalog(); r = query(c, QueryRequest(source='consolidation_mart')); print(r.source_rows)"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60)[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(set(outputs)) == 1
    (folder,) = (tmp_path / "treadle").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == [
        "bpc_reporting.csv",
        "consolidation_mart.parquet",
        "fi_reporting.csv",
        "sources.yaml",
    ]


def test_result_is_json_that_loses_nothing(sample: Catalog) -> None:
    found = compare(sample, CompareRequest(**MAIN, dimensions=["company", "period"]))
    data = json.loads(json.dumps(found.to_dict(rows=True)))
    assert data["summary"]["total_source_a"] == "1500000.00"
    assert data["rows"] == data["top_differences"]
    assert data["tolerance"] == {"absolute": "0.01", "relative": "0.01", "materiality": "5000"}
