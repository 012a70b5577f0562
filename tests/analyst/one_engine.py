"""One engine that answers many questions, for tests of what is answered.

A question opens an engine of its own, which takes longer than to ask it of a few rows. Tests of what an engine is
opened with, may read and use, and of how it is closed have it opened; where the answer is all that a table of cases is
about, `one_engine` gives each question a connection to one, and a database in memory of its own. That engine is locked
as well, and reads what lies among temporary files and nothing else. What is asked while it answers another opens its
own.
"""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

_SET = """
SET GLOBAL python_enable_replacements = FALSE; SET GLOBAL disable_parquet_prefetching = TRUE;
SET enable_external_file_cache = FALSE; SET allowed_directories = {};
SET allowed_configs = ['schema', 'search_path', 'TimeZone', 'enable_progress_bar', 'enable_progress_bar_print'];
SET enable_external_access = FALSE; SET lock_configuration = TRUE
"""
_SET_FOR_EACH = "SET enable_progress_bar = TRUE; SET enable_progress_bar_print = FALSE; SET TimeZone = 'UTC'"


class OneEngine:
    """Stands for `duckdb.connect` where a question opens its engine."""

    def __init__(self, folder: Path) -> None:
        self._open = duckdb.connect
        self._folders = [str(folder), tempfile.gettempdir()]
        self._engines: dict[str, duckdb.DuckDBPyConnection] = {}
        self._turn = threading.Lock()
        self._asked = 0

    def connect(self, *place: Any, **given: Any) -> Any:
        config = given.get("config", {})
        if "temp_directory" not in config or config["memory_limit"] != "2GB" or not self._turn.acquire(blocking=False):
            return self._open(*place, **given)
        threads = config.get("threads", "")
        if threads not in self._engines:
            config["temp_directory"] = f"{self._folders[0]}/spill"
            self._engines[threads] = self._open(*place, config=config)
            self._engines[threads].execute(_SET.format(self._folders))
        self._asked += 1
        return _Turn(self._engines[threads], f"question{self._asked}", self._turn.release)


class _Turn:
    """The connection of one question, which takes all that it made with it."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, name: str, ended: Callable[[], None]) -> None:
        self._engine, self._names, self._ended = engine, [name], ended
        self._connection = engine.cursor()
        self._connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}; {_SET_FOR_EACH}")

    def execute(self, sql: str, values: Any = None) -> Any:
        if sql.startswith("SET allowed_paths"):
            return SimpleNamespace(fetchall=list)
        found = self._connection.execute(sql, values)
        if sql.startswith("ATTACH "):
            self._names.append(sql.split()[-2])
        return found

    def close(self) -> None:
        try:
            self._connection.close()
            for name in self._names:
                self._engine.execute(f"DETACH {name}")
        finally:
            self._ended()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
