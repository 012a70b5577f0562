"""Each line of the log that names a run has its id as a field, by which a program that reads logs finds it."""

import ast
import re
from pathlib import Path

import treadle

SOURCE = Path(treadle.__file__).parent
LOGS = ("log", "_log", "_runs")
LEVELS = ("debug", "info", "warning", "error")
# To parse all files takes seconds, and few of them write to the log.
LINE = re.compile(rf"\b({'|'.join(LOGS)})\.({'|'.join(LEVELS)})\(")


def _names_a_run(call: ast.Call) -> bool:
    """Whether a line is about one run, as its id is among what it says."""
    given = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in call.args]
    return "run_id" in given


def _is_line(node: ast.AST) -> bool:
    function = getattr(node, "func", None)
    return isinstance(function, ast.Attribute) and function.attr in LEVELS and getattr(function.value, "id", "") in LOGS


def test_a_line_about_a_run_has_it_as_a_field() -> None:
    """Those of workers and servers had none: who looked for a run found its steps, and not that its worker had died."""
    found = [
        (path, node)
        for path in SOURCE.rglob("*.py")
        if LINE.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _is_line(node) and _names_a_run(node)
    ]
    assert len(found) > 20
    assert [f"{path}:{node.lineno}" for path, node in found if "extra" not in {one.arg for one in node.keywords}] == []
