"""What a question loads: nothing of the data analyst, unless sources are named or the skill is."""

import subprocess
import sys
from typing import Any


def loaded(treadle: Any, *arguments: str, **more: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "treadle", "ask", *arguments, "--model", "offline"],
        cwd=treadle.folder, env={**treadle.environment, **more}, capture_output=True, text=True, timeout=120,
        check=True,
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_a_sum_loads_no_analyst_and_no_engine(treadle: Any) -> None:
    names = loaded(treadle, "25*4+10")
    assert "treadle.models.offline" in names
    assert not [name for name in names if name.startswith(("treadle.analyst", "duckdb", "sqlglot"))]


def test_the_skill_and_named_sources_bring_it_along(treadle: Any) -> None:
    assert "treadle.analyst" in loaded(treadle, "25*4+10", "--skill", "analyst")
    (treadle.folder / "mine.csv").write_text("company,amount\n1001,1.00\n", encoding="utf-8")
    (treadle.folder / "mine.yaml").write_text(
        "sources:\n  mine:\n    kind: csv\n    path: mine.csv\n    dimensions: {company: {}}\n"
        "    measures: {amount: {aggregation: sum}}\n",
        encoding="utf-8",
    )
    assert "treadle.analyst" in loaded(treadle, "25*4+10", TREADLE_SOURCES="mine.yaml")
