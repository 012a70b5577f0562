"""Files that are taken away or written to while a question is asked: it is refused, and says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import AnalystError, Catalog, CompareRequest, Dimension, Measure, QueryRequest, Source, compare
from treadle.analyst import query as ask
from treadle.analyst.reading import session

from .conftest import QUICK, written

ROWS = [("x", "1.00"), ("y", "2.00")]


def catalog(place: Path, kind: str) -> Catalog:
    measures = (Measure(name="amount", decimals=2),)
    sources = [
        Source(
            **written(place, name, kind, ("k", "amount"), ROWS), dimensions=(Dimension(name="k"),), measures=measures
        )
        for name in "ab"
    ]
    return Catalog(sources, place)


def gone(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("how", [gone, cut, emptied])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "sqlite", "duckdb"])
@pytest.mark.parametrize("told", [True, False])
def test_a_file_that_is_changed_once_a_question_has_begun_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Path], None], kind: str, told: bool
) -> None:
    """Where a person is told how far it is, a file that was gone was an error of Python's; elsewhere the words were
    that it is no text."""
    sources = catalog(tmp_path, kind)
    begin = session.Session.__enter__

    def begun(self: Any) -> Any:
        how(tmp_path / f"b.{kind}")
        return begin(self)

    monkeypatch.setattr(session.Session, "__enter__", begun)
    tell = (lambda _: None) if told else None
    with pytest.raises(AnalystError, match=rf"a file changed while it was read, .*: b\.{kind}; ask again"):
        compare(sources, CompareRequest(source_a="a", source_b="b"), bounds=QUICK, tell=tell)


def test_what_is_wrong_in_a_file_that_stays_is_told(tmp_path: Path) -> None:
    sources = catalog(tmp_path, "csv")
    (tmp_path / "b.csv").write_text("k,amount\nx,one\n")
    with pytest.raises(AnalystError, match="text that is no number"):
        ask(sources, QueryRequest(source="b"), bounds=QUICK)
