"""Where a journal's PostgreSQL database is, and how that is told without its secrets."""

import re
from typing import NamedTuple

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from treadle.journal.addresses import apart_from_schema
from treadle.kernel.errors import Misuse

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,49}")

_SECRETS = ("password", "sslpassword", "oauth_client_secret")

# A server that is gone without a word is noticed, in half a minute.
_PATIENT = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "treadle",
}

_SIGNS = "in a user or password write @ as %40, / as %2F, : as %3A; and a port is a number"

_FORM = "give postgresql://user:password@host:port/database, or libpq's words: host=… dbname=… user=…"

_APART = "only commands take a schema in it: leave it out, and give schema='NAME' beside the address"


class Address(NamedTuple):
    """A database and a schema in it.

    Attributes:
        dsn: what libpq is given.
        schema: the schema.
        where: both, as a person would name them; without secrets.
        secrets: what must not be told.
    """

    dsn: str
    schema: str
    where: str
    secrets: tuple[str, ...]

    def clean(self, text: str) -> str:
        """The text without any secret."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def address_of(dsn: str, schema: str) -> Address:
    """The database that `dsn` names.

    Raises:
        Misuse: it names none, or `schema` is no plain name. What is wrong with a text that holds a password is not
            told in its own words.
    """
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise Misuse(
            f"a schema is a name of small letters, digits and _, 50 at most, and not pg_…; it was given {schema!r}"
        )
    try:
        given = conninfo_to_dict(dsn)
    except ProgrammingError:
        form = _FORM if apart_from_schema(dsn)[1] is None else _APART
        raise Misuse(f"this is not the address of a PostgreSQL database; {form}") from None
    host = str(given.get("host") or given.get("hostaddr") or "")
    user, port = given.get("user"), str(given.get("port") or "")
    # A password that was not written as it should be ends up in its neighbours.
    if "@" in f"{host}{port}{given.get('dbname')}" or not (port.replace(",", "") or "0").isdecimal():
        raise Misuse(f"this is not the address of a PostgreSQL database: {_SIGNS}")
    place = f"{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}"
    where = f"postgresql://{place}/{given.get('dbname') or ''}, schema {schema}"
    secrets = tuple(str(given[name]) for name in _SECRETS if given.get(name))
    return Address(
        # Whatever the database, the user or the environment has: what is written may have any sign.
        make_conninfo(
            dsn, client_encoding="utf8", **{name: value for name, value in _PATIENT.items() if name not in given}
        ),
        schema,
        where,
        secrets,
    )
