"""Whether there is anybody yet to read what is written."""

import os
import socket

import pytest

from treadle.outlet import is_read

pytestmark = pytest.mark.skipif(os.name == "nt", reason="nothing tells there")


def test_a_pipe_is_read_until_its_other_end_is_gone() -> None:
    out_of, into = os.pipe()
    try:
        assert is_read(into)
        os.close(out_of)
        assert not is_read(into)
    finally:
        os.close(into)


def test_who_only_says_no_more_reads_on() -> None:
    own, other = socket.socketpair()
    with own, other:
        other.shutdown(socket.SHUT_WR)
        assert is_read(own.fileno())
        other.close()
        assert not is_read(own.fileno())


def test_what_the_system_tells_nothing_of_is_read() -> None:
    """Some systems say of a terminal or a device that it is no file."""
    own, other = os.pipe()
    os.close(other)
    os.close(own)
    assert is_read(own)
    with open(os.devnull, "wb") as nowhere:
        assert is_read(nowhere.fileno())
