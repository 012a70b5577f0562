"""What a page shows can be pasted: each block is a whole program, or the page says at its top how to go about it.

A block is a whole program if it is one as a file, by itself: no `await` outside of a function, no name from an earlier
block. Where the Python that runs the tests has a prompt that takes such blocks as they are (3.13 and newer), two pages
are really pasted there.
"""

import ast
import builtins
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, blocks, name_of

SECTION = "getting-started.md#pasting-from-these-pages"
NOTE = re.compile(
    r"# [^\n]+\n\n> To try it, \[paste the blocks\]\((?P<link>[^)]+)\) of this page, in order, "
    r"into `python -m asyncio`\n"
    r"> \(Python 3\.13 or newer\) or a notebook\.\n\n"
)
SECONDS = 60
READY = "\x1b[?12l\x1b[?25h"
"""What the prompt sends last before it waits: a cursor that can be seen."""


def missing(code: str) -> set[str]:
    """What a block lacks to be a program: names of other blocks, or a function around its `await`."""
    try:
        compile(code, "block", "exec")
    except SyntaxError as error:
        return {str(error)}
    there, wanted = set(dir(builtins)) | {"__name__", "__file__"}, set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                wanted.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                there.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                there.add(name)
            case ast.alias(name=name, asname=other):
                there.add((other or name).partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                there.add(name)
    return wanted - there


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_whole_programs_or_the_page_says_how_to_paste_them(page: Path) -> None:
    text = page.read_text("utf-8")
    lacking = {block.line: missing(block.code) for block in blocks(text) if missing(block.code)}
    note = NOTE.match(text)
    if lacking:
        assert note, f"{name_of(page)} needs the note on pasting after its title: {lacking}"
        assert note["link"] in (SECTION, SECTION.partition("#")[1] + SECTION.partition("#")[2])
    else:
        assert not note, f"each block of {name_of(page)} is a whole program: the note on pasting is not true"


def test_the_notes_lead_to_the_section() -> None:
    assert "\n## Pasting from these pages\n" in (ROOT / "docs" / "getting-started.md").read_text("utf-8")


def test_what_a_block_lacks_is_seen() -> None:
    assert missing("await x")
    assert missing("print(result)") == {"result"}
    assert missing("from a.b import c as d\nimport e.f\ndef g(h): return h\ng(d, e)\n[k for k in 'l']") == set()


def pasted(terminal: int, code: str, until: str) -> str:
    """What is said at a terminal while `code` is typed at it, up to `until`, and by then the prompt waits again."""
    typed, seen = code.encode(), ""
    while typed or not seen.rpartition(until)[2].endswith(READY) or until not in seen:
        ready, room, _ = select.select([terminal], [terminal] if typed else [], [], SECONDS)
        assert ready or room, f"nothing more came after: {seen[-2000:]}"
        if ready:
            seen += os.read(terminal, 65536).decode("utf-8", "replace")
        if room:
            typed = typed[os.write(terminal, typed[:200]) :]
    return seen


@pytest.mark.skipif(sys.version_info < (3, 13), reason="this Python's prompt does not take whole blocks")
@pytest.mark.parametrize("name", ["limits", "approvals"])
def test_a_page_can_be_pasted_at_the_prompt(name: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "NO_COLOR": "1", "PYTHON_HISTORY": str(tmp_path / "history")}
    with subprocess.Popen(
        [sys.executable, "-m", "asyncio"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            pasted(ours, "", ">>> ")
            for number, block in enumerate(blocks((ROOT / "docs" / f"{name}.md").read_text("utf-8")), start=1000):
                code = f"{block.code}\nprint('block', {number} + 1000)\n".replace("\n", "\r")
                said = pasted(ours, f"\x1b[200~{code}\x1b[201~\r", f"block {number + 1000}")
                assert "Traceback" not in said
                assert "SyntaxError" not in said
        finally:
            process.kill()
            os.close(theirs)
            os.close(ours)
