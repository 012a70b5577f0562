"""Questions whose process was killed on the spot left what they had put aside, for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

ASKS = """\
import sys
from treadle.analyst import Catalog, CompareRequest, compare

def tell(words):
    if words == "looking at the differences":
        print("there", flush=True)
        sys.stdin.readline()

compare(Catalog.load("s.yaml"), CompareRequest(source_a="a", source_b="a"), exports=sys.argv[1:], tell=tell)
"""
QUERIES = (
    "from treadle.analyst import Catalog, QueryRequest, query; query(Catalog.load('s.yaml'), QueryRequest(source='a'))"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.yaml").write_text("sources: {a: {kind: csv, path: a.csv, dimensions: {k: {}}, measures: {v: {}}}}\n")
    (tmp_path / "a.csv").write_text("k,v\n1,2.00\n")
    (tmp_path / "aside").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "aside"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asking(*exports: str) -> subprocess.Popen[str]:
    """A comparison that is under way until it is told to go on."""
    begun = subprocess.Popen(
        [sys.executable, "-c", ASKS, *exports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert begun.stdout is not None
    assert begun.stdout.readline() == "there\n"
    return begun


def left(place: Path) -> tuple[int, int]:
    """How many folders and drafts there are."""
    return len([*(place / "aside").iterdir()]), len([*place.glob(".*.part")])


@pytest.mark.skipif(sys.platform == "win32", reason="TMPDIR")
def test_the_next_command_takes_away_what_a_killed_one_left(place: Path) -> None:
    """And nothing of one that is under way, nor what others have there."""
    (place / "aside" / "treadle-put-aside-mine").mkdir()
    (place / ".mine.part").write_text("mine")
    killed, running = asking("o.csv", "o.json"), asking("p.csv")
    assert left(place) == (5, 4)
    killed.kill()
    killed.communicate()
    assert left(place) == (5, 4)
    subprocess.run([sys.executable, "-c", QUERIES], check=True)
    assert left(place) == (3, 2)
    running.communicate("go on\n")
    assert running.returncode == 0
    assert left(place) == (1, 1)
    assert (place / "p.csv").read_text().startswith("measure,k,")
    assert sorted(path.name for path in place.glob("o.*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="TMPDIR")
def test_a_folder_that_names_other_files_takes_none_of_them_away(place: Path) -> None:
    folder = place / "aside" / "treadle-put-aside-odd"
    folder.mkdir()
    (folder / "held").write_text(f'["{place / "a.csv"}", "{place / "none.part"}"]')
    (place / "none.part").write_text("")
    subprocess.run([sys.executable, "-c", QUERIES], check=True)
    assert not folder.exists()
    assert (place / "a.csv").exists()
    assert (place / "none.part").exists()
