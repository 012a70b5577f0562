"""`import treadle` stays light: what is heavy is imported where it is used."""

import inspect
import subprocess
import sys

import pytest

from treadle import Limits, Price, StepSettings

HEAVY = {
    "anthropic",
    "botocore",
    "click",
    "duckdb",
    "genai_prices",
    "httpx2",
    "openai",
    "rich",
    "sqlglot",
    "yaml",
}


def test_importing_treadle_imports_nothing_heavy() -> None:
    program = "import sys, treadle; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("name", ["treadle", "treadle.models", "treadle.workers"])
def test_what_is_loaded_when_it_is_used_is_listed_before(name: str) -> None:
    program = f"import {name} as module; print(sorted(set(module.__all__) - set(dir(module))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("kind", "first"), [(Price, "input"), (StepSettings, "model"), (Limits, "steps")])
def test_help_shows_the_arguments(kind: type, first: str) -> None:
    assert next(iter(inspect.signature(kind).parameters)) == first
