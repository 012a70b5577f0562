"""Every program in examples/ runs as it stands, with no key, and prints what it says it prints.

Where examples/NAME.out exists, NAME.py must print exactly that.
"""

import os
import re
from pathlib import Path

import pytest
from stem import Stem, run_in

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS_AN_EXAMPLE = 120


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda program: program.name)
def test_the_example_runs(program: Path, tmp_path: Path, strict: Stem | None) -> None:
    environment = {name: value for name, value in os.environ.items() if not re.search("API_KEY|TOKEN|BASE_URL", name)}
    environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONIOENCODING": "utf-8"}
    done = run_in(
        strict, [str(program)], tmp_path, environment, options=["-W", "error"], seconds=SECONDS_AN_EXAMPLE
    )  # fmt: skip
    assert done.returncode == 0, f"{program.name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    expected = program.with_suffix(".out")
    if expected.exists():
        assert done.stdout == expected.read_text(encoding="utf-8")


def test_every_expected_output_has_its_program() -> None:
    assert [out.name for out in EXAMPLES.glob("*.out") if not out.with_suffix(".py").exists()] == []
