"""The command line over a journal in PostgreSQL; its password is shown nowhere."""

from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest
from postgres_server import Server

PAYING = ("--model", "script:paying", "--tools", "script")
_schemas = count(1)


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    schema = f"cli_{next(_schemas)}"
    yield f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres?schema={schema}&connect_timeout=5"
    server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def unshown(done: Any, server: Server) -> str:
    """All that was said, which has no password in it."""
    said = str(done.out + done.err)
    assert server.password not in said
    return said


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_run_is_kept_shown_and_gone_on_with(treadle: Any, server: Server, url: str, by: str) -> None:
    option = ("--journal", url) if by == "option" else ()
    variables = {} if option else {"TREADLE_JOURNAL": url}
    assert "no runs yet in postgresql://owner:PASSWORD@" in unshown(treadle("runs", *option, **variables), server)
    asked = treadle("ask", "pay the bill", *PAYING, *option, **variables)
    assert asked.code == 4
    assert ("--journal" in unshown(asked, server)) is (by == "option")
    assert ("postgresql://owner:PASSWORD@127.0.0.1" in asked.err) is (by == "option")
    listed = treadle("runs", *option, **variables)
    assert "pay the bill" in unshown(listed, server)
    assert "asks for approval" in unshown(treadle("show", "last", *option, **variables), server)
    done = treadle("approve", "last", *PAYING, *option, **variables)
    assert (done.code, done.out) == (0, "The tool said: paid 40 / seen bill\n")
    assert treadle("costs", "last", *option, **variables).code == 0
    assert not treadle.journal.exists()
    doctor = treadle("doctor", *option, **variables)
    assert "newest run" in unshown(doctor, server)


def test_doctor_says_what_is_wrong_with_it_without_the_password(treadle: Any, server: Server) -> None:
    wrong = f"postgresql://owner:wr%40ng-{server.password}@127.0.0.1:{server.port}/postgres"
    done = treadle("doctor", "--journal", wrong)
    assert "refuses this user or password" in unshown(done, server)
    assert done.code == 2
    assert "wr@ng" not in done.out
    gone = treadle("doctor", "--journal", f"postgresql://owner:{server.password}@127.0.0.1:1/postgres")
    assert "nothing answers there" in unshown(gone, server)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://owner:hunter2@h@127.0.0.1/postgres", "write @ as %40"),
        ("postgresql://owner:hunter2@127.0.0.1:many/postgres", "a port is a number"),
        ("postgresql://owner:hunter2/x@127.0.0.1/postgres", "/ as %2F"),
        ("postgresql://owner:hunter2@127.0.0.1/postgres?color=red", "is not the address"),
        ("postgresql://owner:hunter2@127.0.0.1/postgres?schema=A;b", "a schema is a name"),
        ("postgresql://owner:hunter2@127.0.0.1:1/postgres", "nothing answers there"),
        ("postgresql://127.0.0.1:1/postgres?user=owner&password=hunter2", "nothing answers there"),
    ],
)
def test_an_address_that_cannot_be_right_is_told_without_its_password(treadle: Any, address: str, words: str) -> None:
    asked = treadle("ask", "hello", "--model", "script:answers", "--journal", address)
    assert asked.code == 2
    assert words in asked.err
    assert "hunter2" not in asked.out + asked.err
    debugged = "".join(treadle.start("--debug", "runs", "--journal", address).communicate(timeout=60))
    assert words in debugged
    assert "Traceback" in debugged
    assert "hunter2" not in debugged


def test_a_word_in_the_password_that_looks_like_the_address_is_no_way_round(treadle: Any, server: Server) -> None:
    secret = quote("p?schema=x&password=hunter2#@/", safe="")
    done = treadle("runs", "--journal", f"postgresql://owner:{secret}@127.0.0.1:{server.port}/postgres")
    assert "refuses this user or password" in done.err
    assert "hunter2" not in done.err
