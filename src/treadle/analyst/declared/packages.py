"""Packages: what the analyst needs installed besides treadle itself, and what is said where it is not."""

from importlib.util import find_spec

from treadle.kernel.errors import Misuse

ENGINE = ("duckdb", "sqlglot")
"""What a question is answered with."""


def need_packages(*names: str) -> None:
    """Raises Misuse, which says what to install, unless these packages are there."""
    for name in names:
        if find_spec(name) is None:
            raise Misuse(f"the data analyst needs {name}: pip install 'treadle[analyst]'")


def engine_version() -> int:
    """The first number of the engine's version."""
    import duckdb

    return int(duckdb.__version__.partition(".")[0])
