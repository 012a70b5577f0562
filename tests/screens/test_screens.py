"""What a newcomer's first ten commands show at a terminal, kept as files that a person has looked at.

Each file beside this one is a screen of 80 columns, or of as many as its name says, captured from a pseudo-terminal.
What differs from run to run (ids, times, versions, folders) is written alike, as long as it was. A screen that is meant
to change is written anew by `TREADLE_SCREENS=write pytest tests/screens`; look at it before you keep it.
"""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import drawn

import treadle as library

FILES = Path(__file__).parent
COMPARED = "fi_reporting and consolidation_mart for company 1001 in period 202401"
SCREENS = {
    "01-help": "treadle",
    "02-ask": 'treadle ask "What is 25 * 4 + 10?"',
    "03-trace": 'treadle ask "What is the total value of our gadget inventory?" --skill inventory --trace',
    "04-analyst": f'treadle ask "Compare the amount totals between {COMPARED}" --skill analyst',
    "05-no-answer": 'treadle ask "Which of our two ledgers should we compare?"',
    "06-runs": "treadle runs",
    "07-show": "treadle show last",
    "08-sources": "treadle sources",
    "09-compare": "treadle compare fi_reporting consolidation_mart --where company=1001",
    "10-doctor": "treadle doctor",
    "06-runs-60": "treadle runs",
}
CHANGING = (
    (r"\d{8}-\d{6}-[0-9a-f]{10}", "20260101-090000-0123456789"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-01 09:00:00"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "01-01 09:00"),
    (r"\b\d\d:\d\d:\d\d\b", "09:00:00"),
    (r"\b\d+\.\d\d s\b", "0.00 s"),
    (r"about [\d,]+ tokens", "about 1,000 tokens"),
    (r"seconds \d\.[\de-]+ of", "seconds 0.0 of"),
    (r"/tmp/treadle-[\w-]{8}", "/home/newcomer-----"),
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder whose name is as long each time."""
    if not sys.platform.startswith("linux"):
        pytest.skip("folders are elsewhere there")
    with tempfile.TemporaryDirectory(prefix="treadle-", dir="/tmp") as name:
        yield Path(name)


def screens(names: list[str], columns: int, home: Path) -> dict[str, str]:
    """What each of the commands shows, one after the other, at a terminal of that width."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "TREADLE_FORBID_MODELS": "1", "TZ": "UTC",
        "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(Path(library.__file__).resolve().parents[1]),
    }  # fmt: skip
    (written,) = drawn([shlex.split(SCREENS[name])[1:] for name in names], [columns], home, environment)
    return {name: seen(screen, columns) for name, screen in zip(names, written, strict=True)}


def seen(written: str, columns: int) -> str:
    """What a terminal shows of what was written to it: it breaks lines that are too long, and can be written over."""
    rows, row, at = [""], 0, 0
    for steer, character in re.findall(r"(\x1b\[[\d;]*[A-Za-z])|([\s\S])", written):
        if steer.endswith("A"):
            row = max(0, row - int(steer[2:-1] or 1))
        elif steer.endswith("J"):
            del rows[row + 1 :]
            rows[row] = rows[row][:at]
        elif steer.endswith("K"):
            rows[row] = rows[row][:at]
        elif steer:
            assert steer.endswith(("m", "h", "l")), repr(steer)
        elif character == "\r":
            at = 0
        else:
            if character == "\n" or at >= columns:
                row, at = row + 1, 0
                rows += [""] * (row + 1 - len(rows))
            if character != "\n":
                assert character.isprintable(), repr(character)
                rows[row] = f"{rows[row]:<{at}}"[:at] + character + rows[row][at + 1 :]
                at += 1
    return "\n".join(rows)


def alike(text: str) -> str:
    """A screen without what differs from run to run; a version may have any number of digits, and break lines."""
    for pattern, written in CHANGING:
        text = re.sub(pattern, written, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def words(text: str) -> list[str]:
    """The words of the doctor's screen, without the versions and paths of this machine, which break its lines."""
    text = re.sub(r"(?s)\npython .*?\nsettings", "\nsettings", text)
    text = re.sub(r"(?s)\nsqlite .*?\njournal", "\njournal", text)
    text = re.sub(r"(?s)\nanalyst .*?\nkeys", "\nkeys", text)
    return re.sub(r"[\d,]+\s+bytes", "bytes", text).split()


def test_the_first_screens_are_as_they_were_looked_at(home: Path) -> None:
    for columns in (80, 60):
        look_at(columns, home)


def look_at(columns: int, home: Path) -> None:
    names = [name for name in SCREENS if name.endswith("-60") == (columns == 60)]
    for name, screen in screens(names, columns, home).items():
        shown = f"$ {SCREENS[name]}\n{alike(screen)}\n"
        file = FILES / f"{name}.txt"
        if os.environ.get("TREADLE_SCREENS") == "write":
            file.write_text(shown, "utf-8")
        kept = file.read_text("utf-8")
        if name == "10-doctor":
            assert words(shown) == words(kept)
        else:
            assert shown == kept


def test_every_screen_has_its_command() -> None:
    assert sorted(path.stem for path in FILES.glob("*.txt")) == sorted(SCREENS)
