"""Types a person can lean on: mypy --strict and pyright agree on what each file of `cases/` says, and on programs.

A case is a file that is read by the checkers and never run. In it `assert_type` says what a checker must know, and
`# expect-error` marks the lines that it must refuse. A new subject (agents and their results, say) is a new file there.
pyright is run as basedpyright, which brings its own node and needs no network; in the mode called "strict" it reports
what pyright does.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ["web_approval", "shared_budget", "typed_team", "nightly_job", "tests_without_network"]
"""Examples in which nothing may be refused."""

CASES = [*sorted((Path(__file__).parent / "cases").glob("*.py")), *(ROOT / f"examples/{name}.py" for name in PROGRAMS)]
SOURCES = ROOT / "src"
# What strict mode says of style, and of what mypy does not look at.
STYLE = ["reportUnusedExpression", "reportUnusedFunction", "reportUnknownMemberType", "reportUnknownLambdaType"]


def expected(case: Path) -> set[int]:
    lines = case.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# expect-error")}


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT, env=os.environ | {"MYPYPATH": "src"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def compared(found: dict[str, dict[int, str]]) -> None:
    for case in CASES:
        said = found.get(case.name, {})
        missed = expected(case) - said.keys()
        assert not missed, f"{case.name}: not refused: lines {sorted(missed)}"
        others = {line: message for line, message in said.items() if line not in expected(case)}
        assert not others, f"{case.name}: refused, but right: {others}"


def test_mypy_knows() -> None:
    # With the options of `make check`, which may have read the library just before, and kept what it found.
    said = run("mypy", "--no-error-summary", *CASES)
    found: dict[str, dict[int, str]] = {}
    for path, line, message in re.findall(r"^([^:\n]*\.py):(\d+): error: (.*)$", said, re.MULTILINE):
        found.setdefault(Path(path).name, {})[int(line)] = message
    compared(found)


def test_pyright_knows(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    settings = {"typeCheckingMode": "strict", "include": [*map(str, CASES)], "extraPaths": [str(SOURCES)]}
    config.write_text(json.dumps({**settings, **dict.fromkeys(STYLE, False)}))
    report = json.loads(run("basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", config))
    found: dict[str, dict[int, str]] = {}
    for each in report["generalDiagnostics"]:
        if each["severity"] == "error":
            found.setdefault(Path(each["file"]).name, {})[each["range"]["start"]["line"] + 1] = each["message"]
    assert report["summary"]["filesAnalyzed"] >= len(CASES)
    compared(found)
