"""The table of docs/protocols.md: every cell names a test that there is."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = [*(ROOT / "tests" / "protocols").glob("test_*.py"), *(ROOT / "tests" / "peers").glob("test_front_ends*.py")]


def test_every_cell_names_a_test() -> None:
    page = (ROOT / "docs" / "protocols.md").read_text("utf-8")
    rows = [line.split("|")[2:-1] for line in page.partition("## Protocol by feature")[2].splitlines() if "`" in line]
    cells = [cell.strip() for row in rows if len(row) == 4 for cell in row]
    there = {name for file in TESTS for name in re.findall(r"def test_(\w+)", file.read_text("utf-8"))}
    named = {cell.strip("`") for cell in cells if cell != "—"}
    assert len(cells) > 80
    assert named <= there, named - there
