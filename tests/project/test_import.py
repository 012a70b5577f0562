"""`import treadle` stays light: what is heavy is imported where it is used."""

import subprocess
import sys

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
