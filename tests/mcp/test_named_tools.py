"""Names of tools that the user gives and the server has not: said aloud, with what it has."""

import logging

import pytest

pytestmark = pytest.mark.anyio


async def test_a_name_that_the_server_has_not_is_told_with_what_it_has(raw, caplog):
    server = raw(only=["ehco", "fail"], effects={"cuont": "read"})
    async with server:
        assert [one.remote for one in await server.listed()] == ["fail"]
        await server.listed()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert (
        "the server raw has no tool 'ehco', which only= names; did you mean 'echo'? It has echo, fail, die" in told[0]
    )
    assert "'cuont', which effects= names; did you mean 'count'?" in told[1]


async def test_names_that_it_has_are_told_of_nobody(raw, caplog):
    async with raw(only=["echo"], effects={"echo": "read", "count": "write"}) as server:
        await server.listed()
    assert not caplog.records


async def test_no_secret_is_told_in_a_name(raw, caplog, tmp_path):
    (tmp_path / "tools.json").write_text('[{"name": "very-secret-key", "inputSchema": {"type": "object"}}]')
    async with raw(only=["very-secret"], env={"KEY": "very-secret-key"}) as server:
        assert await server.listed() == ()
    assert "very-secret-key" not in caplog.text
    assert "It has none" in caplog.text
