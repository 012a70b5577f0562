"""The picture of the loop shows the loop: docs/loop.svg is what the kernel's table of transitions draws."""

import runpy
from pathlib import Path

from treadle.kernel.fold import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_is_drawn_from_the_table() -> None:
    drawn = runpy.run_path(str(ROOT / "scripts/diagram.py"))["draw"]()
    assert (ROOT / "docs/loop.svg").read_text(encoding="utf-8") == drawn, "run `make diagram`"


def test_the_picture_has_every_phase_and_every_event() -> None:
    picture = (ROOT / "docs/loop.svg").read_text(encoding="utf-8")
    names = {*TRANSITIONS, *(event.__name__ for row in TRANSITIONS.values() for event in row)}
    assert {name for name in names if name not in picture} == set()
