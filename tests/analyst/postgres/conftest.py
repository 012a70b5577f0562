"""Tables in the PostgreSQL server that `server` starts."""

import os
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from treadle.analyst import Dimension, Measure, Source, parse_format

DSN = "TREADLE_TEST_DSN"


@pytest.fixture(autouse=True)
def dsn(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(DSN, server.dsn())


def named(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


@pytest.fixture
def table(server: Any, request: pytest.FixtureRequest) -> Callable[..., Source]:
    """Writes rows to a table and returns the source; the last column is the measure `amount`."""
    import psycopg

    schema = re.sub(r"\W", "_", request.node.name)[:40] + "_" + secrets.token_hex(3)
    server.execute(f"CREATE SCHEMA {schema}")

    def made(
        name: str,
        rows: Sequence[Sequence[Any]],
        *,
        columns: Sequence[str] = ("company", "amount"),
        types: Sequence[str] = (),
        formats: dict[str, str] | None = None,
        key_types: dict[str, Any] | None = None,
        kind: str = "postgres",
        **measure: Any,
    ) -> Source:
        kinds = types or (*(["text"] * (len(columns) - 1)), "numeric(18,2)")
        listed = ", ".join(f"{named(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {schema}.{named(name)} ({listed})".encode())
            with connection.cursor().copy(f"COPY {schema}.{named(name)} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        dimensions = tuple(
            Dimension(
                name=column, format=parse_format((formats or {}).get(column, "")), type=(key_types or {}).get(column)
            )
            for column in columns[:-1]
        )
        return Source(
            name=name, kind=kind, table=f"{schema}.{name}", dsn_env=DSN, dimensions=dimensions,
            measures=(Measure(name="amount", column=columns[-1], **({"decimals": 2} | measure)),),
        )  # fmt: skip

    return made


@pytest.fixture(params=["psycopg", "sqlalchemy"])
def through(request: pytest.FixtureRequest, server: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Source], Source]:
    """Turns a source into one that is read by either way to PostgreSQL."""
    import msgspec

    if request.param == "psycopg":
        return lambda source: source
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TREADLE_TEST_URL", server.url())
    return lambda source: msgspec.structs.replace(source, kind="sqlalchemy", dsn_env="TREADLE_TEST_URL")
