"""Without the packages that the analyst needs, whoever asks it is told what to install."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import Catalog, Dimension, Measure, QueryRequest, Source, query, sample_catalog
from treadle.kernel.errors import Misuse


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = importlib.util.find_spec

    def hide(package: str) -> None:
        def spec(name: str, *more: Any) -> Any:
            return None if name == package else found(name, *more)

        monkeypatch.setattr("treadle.analyst.declared.packages.find_spec", spec)

    return hide


@pytest.mark.parametrize("package", ["duckdb", "sqlglot", "yaml"])
def test_the_sample_says_what_to_install(tmp_path: Path, without: Any, package: str) -> None:
    without(package)
    with pytest.raises(Misuse, match=rf"needs {package}: pip install 'treadle\[analyst\]'"):
        sample_catalog(tmp_path)


def test_a_question_says_what_to_install(tmp_path: Path, without: Any) -> None:
    (tmp_path / "a.csv").write_text("k,v\nx,1\n", encoding="utf-8")
    source = Source(
        name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="k"),), measures=(Measure(name="v"),)
    )
    without("duckdb")
    with pytest.raises(Misuse, match="pip install"):
        query(Catalog([source], tmp_path), QueryRequest(source="a", dimensions=[]))
