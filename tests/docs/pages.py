"""The pages of the documentation, and the python blocks in them."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*\{?\s*\.?(?P<language>[\w+-]*)")
SKIP = re.compile(r"\s*<!--\s*skip:\s*(?P<reason>.+?)\s*-->\s*")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """A python block: the line that its code begins on, the code, and why it is not run (empty if it is)."""

    line: int
    code: str
    skip: str


def blocks(text: str) -> Iterator[Block]:
    """The python blocks of a Markdown text, also those inside lists, tabs and notes, which are indented."""
    skip = ""
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if comment := SKIP.fullmatch(line):
            skip = comment["reason"]
        elif opening := FENCE.match(line):
            closing = re.compile(rf"\s*{opening['fence'][0]}{{{len(opening['fence'])},}}\s*")
            code = []
            for _, inner in lines:
                if closing.fullmatch(inner):
                    break
                code.append(inner)
            if opening["language"] in ("python", "py"):
                yield Block(number + 1, textwrap.dedent("\n".join(code)), skip)
            skip = ""
        elif line.strip():
            skip = ""
