"""What the tests of ledgers share: places for them, and a wire to the server that can be cut."""

from itertools import count

import pytest
from cuttable_wire import Wire

from treadle import Budget

_schemas = count(1)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def url(server):
    """The address of the database."""
    return f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres"


@pytest.fixture
def schema(server):
    """A schema of the database in which nothing is."""
    name = f"budgets{next(_schemas)}"
    yield name
    server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
def wire(server):
    made = Wire(server.port)
    yield made
    made.close()


@pytest.fixture
def over(server, schema, wire):
    """Makes a budget whose server is at the end of the wire."""
    made = []

    def make(**given):
        path = f"postgresql://owner:{server.password}@127.0.0.1:{wire.port}/postgres"
        made.append(Budget(path=path, schema=schema, **given))
        return made[-1]

    yield make
    wire.cut = lambda said: ""
    for one in made:
        one.close()


@pytest.fixture
def straight(url, schema):
    """Makes a budget in the same place, past the wire."""
    made = []

    def make(**given):
        made.append(Budget(path=url, schema=schema, **given))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(params=["memory", "file", "postgres"])
def ledger(request, tmp_path):
    """A ledger in each of its places."""
    if request.param == "postgres":
        budget = request.getfixturevalue("straight")(tokens=1)
    else:
        budget = Budget(tokens=1, path=tmp_path / "spend.db" if request.param == "file" else None)
    yield budget.ledger
    budget.close()
