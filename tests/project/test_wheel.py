"""The wheel alone: what works with no more than each extra brings along, and what says what to install."""

import os
import subprocess
import sys
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


@cache
def brought(extras: tuple[str, ...]) -> frozenset[str]:
    """The distributions that come with treadle and some of its extras, as pyproject.toml and they themselves say."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    todo = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    found: set[str] = set()
    wanted = [(Requirement(line), "") for line in todo]
    while wanted:
        requirement, extra = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name in found or name == "treadle":
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        found.add(name)
        wanted += [(Requirement(line), "") for line in distribution(name).requires or ()]
    return frozenset(found)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is in the wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    zipfile.ZipFile(built).extractall(folder / "inside")
    return folder / "inside"


class Bare:
    """A Python that finds the wheel, what it brings along, and nothing else."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        self.packages, self.home = folder / "packages", folder / "home"
        self.packages.mkdir()
        self.home.mkdir()
        for name in sorted(brought(extras)):
            try:
                files = distribution(name).files or ()
            except PackageNotFoundError:
                pytest.skip(f"{name} is not installed")
            for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
                link = self.packages / top
                if not link.exists():
                    link.symlink_to(Path(str(distribution(name).locate_file(top))))
        for one in wheel.iterdir():
            (self.packages / one.name).symlink_to(one)

    def __call__(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-S", *words], cwd=self.home, capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONPATH": str(self.packages), **environment},
        )  # fmt: skip

    def python(self, program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self("-c", f"from treadle import *\n{program}", **environment)


OFFLINE = """
from typing import Literal

@tool(effect="read")
def opening_hours(day: Literal["Monday", "Sunday"]) -> str:
    '''Tells the opening hours of the shop on a day of the week.'''
    return "9 to 18"

print(Agent("offline", tools=[opening_hours]).run_sync("What are the opening hours on Monday?").text)
"""


def test_the_wheel_has_all_that_the_source_has(wheel: Path) -> None:
    def files(folder: Path) -> set[str]:
        # What Python is compiling at this moment has another suffix for as long as that takes.
        found = {one.relative_to(folder) for one in folder.rglob("*") if one.is_file()}
        return {str(one) for one in found if "__pycache__" not in one.parts}

    assert files(wheel / "treadle") == files(ROOT / "src/treadle")


def test_the_library_alone_works_or_says_what_to_install(wheel: Path, tmp_path: Path) -> None:
    bare = Bare(tmp_path, wheel)
    assert "9 to 18" in bare.python(OFFLINE).stdout
    refused = bare.python("Agent('ollama:qwen3').run_sync('Hello?')").stderr
    assert 'a model over the network needs httpx2: pip install "treadle[http]"' in refused
    command = bare("-m", "treadle", "ask", "2*3?")
    assert command.returncode != 0
    assert command.stderr.strip() == "the command line needs a few more packages: pip install 'treadle[cli]'"


def test_the_command_line_alone_works_or_says_what_to_install(wheel: Path, tmp_path: Path) -> None:
    bare = Bare(tmp_path, wheel, "cli")
    done = bare("-m", "treadle", "ask", "2*3?")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "2*3 = 6")
    for words, needed in (
        (["ask", "Compare fi_reporting and consolidation_mart"], "pip install 'treadle[analyst]'"),
        (["ask", "Compare them", "--skill", "analyst"], "pip install 'treadle[analyst]'"),
        (["sources"], "pip install 'treadle[analyst]'"),
        (["ask", "Hello?", "--model", "ollama:qwen3"], "pip install 'treadle[http]'"),
        (["keys", "set", "openai"], "pip install 'treadle[keyring]'"),
        (["runs", "--journal", "postgresql://me@127.0.0.1:1/none"], "treadle[postgres]"),
    ):
        said = bare("-m", "treadle", *words)
        assert needed in said.stderr, said
        assert "Traceback" not in said.stderr


def test_a_server_that_is_not_there_is_told_so(wheel: Path, tmp_path: Path) -> None:
    bare = Bare(tmp_path, wheel, "http")
    program = "result = Agent('ollama:qwen3', retries=0).run_sync('Hello?')\nprint(result.stop.reason, result.error)"
    done = bare.python(program, OLLAMA_HOST="127.0.0.1:1")
    assert done.stdout.startswith("model_error "), done
    assert "127.0.0.1:1" in done.stdout
