"""Five whole programs take no more lines here than with pydantic-ai; theirs run where TREADLE_PEERS_PYTHON has it.

A line counts that has code on it before the mark where the program ends: no comments, no docstrings, no blank lines.
Both are formatted alike.
"""

import ast
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS, THEIRS = ROOT / "examples", ROOT / "tests/peers/programs"
PROGRAMS = {
    "web_approval": "Done.",
    "shared_budget": "are done",
    "typed_team": "amount=20",
    "nightly_job": "in the ledger: 12.50, 7.00, 3.10",
    "tests_without_network": "3 passed",
}
PYTHON = os.environ.get("TREADLE_PEERS_PYTHON", sys.executable)
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines_of_code(path: Path) -> int:
    program, mark, _ = path.read_text("utf-8").partition("# --- the program ends here")
    assert mark or path.stem in ("shared_budget", "typed_team"), path
    told: set[int] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and ast.get_docstring(
            node
        ):
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    read = iter(program.splitlines(keepends=True))
    tokens = [one for one in tokenize.generate_tokens(lambda: next(read, "")) if one.type not in NO_CODE]
    return len({line for one in tokens for line in range(one.start[0], one.end[0] + 1)} - told)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_takes_no_more_lines_than_with_pydantic_ai(program: str) -> None:
    assert lines_of_code(OURS / f"{program}.py") <= lines_of_code(THEIRS / f"{program}.py")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_of_pydantic_ai_does_the_same(program: str, tmp_path: Path) -> None:
    needs = "pydantic_ai, fastapi, dbos, pytest"
    if subprocess.run([PYTHON, "-c", f"import {needs}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{needs} are not installed for {PYTHON}")
    for name in (program, "played"):
        (tmp_path / f"{name}.py").write_text((THEIRS / f"{name}.py").read_text("utf-8"), "utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OPENAI_API_KEY")}
    done = subprocess.run(
        [PYTHON, f"{program}.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert PROGRAMS[program] in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
