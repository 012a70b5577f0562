"""What looks for files that import each other in a circle, as `make check` does in treadle, finds them."""

import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "circles.py"
FILES = {
    "__init__.py": "",
    "one.py": "from made_up.two import TWO\nONE = 1\n",
    "two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made_up.inner import three\nTWO = 2\n",
    "alone.py": "import json\nfrom made_up.one import ONE\n",
    "inner/__init__.py": "",
    "inner/three.py": "def late():\n    from ..one import ONE\n    return ONE\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "made_up" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "made_up"


def looked(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True)


def test_one_through_a_lazy_and_a_typing_import_is_found_and_named(package: Path) -> None:
    done = looked(package)
    assert done.returncode == 1
    assert done.stderr == ""
    [line] = done.stdout.splitlines()
    modules = line.removeprefix("imports in a circle: ").split(" -> ")
    assert modules[0] == modules[-1]
    assert set(modules) == {"made_up.one", "made_up.two", "made_up.inner.three"}
    imports = {"made_up.one": "made_up.two", "made_up.two": "made_up.inner.three", "made_up.inner.three": "made_up.one"}
    assert all(imports[one] == other for one, other in pairwise(modules))


def test_without_one_of_its_imports_there_is_none(package: Path) -> None:
    (package / "inner" / "three.py").write_text("THREE = 3\n", encoding="utf-8")
    done = looked(package)
    assert (done.returncode, done.stdout) == (0, "")


def test_each_of_several_is_found() -> None:
    circles = runpy.run_path(str(SCRIPT))["circles"]
    found = circles({"a": {"b"}, "b": {"a"}, "c": {"d", "a"}, "d": {"e"}, "e": {"c"}})
    assert sorted(sorted(set(circle)) for circle in found) == [["a", "b"], ["c", "d", "e"]]
