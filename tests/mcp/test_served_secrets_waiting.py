"""A call served over MCP, whose arguments the journal redacts, is made as its client said it after a wait."""

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client

from treadle import MemoryJournal, tool
from treadle.mcp import server_of
from treadle.tools import ToolContext
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
CARD = "4111 1111"


def journal_that_redacts():
    return MemoryJournal(redact=lambda text: text.replace(CARD, "[card]"))


def person(asked, **said):
    async def answer(context, params):
        asked.append(params.message)
        wanted = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: said[name] for name in wanted})

    return answer


async def written(journal):
    return [repr(event) for line in await journal.list(10) for event in await journal.read(line.run_id)]


def till(charged, **more):
    @tool(**more)
    def charge(card: str) -> str:
        """Charges a card."""
        charged.append(card)
        return "charged"

    return charge


@ERAS
async def test_an_approved_call_is_made_with_what_its_client_said(mode):
    """It was made with what the journal had put in the place of the card."""
    charged, asked, journal = [], [], journal_that_redacts()
    pay = till(charged, needs_approval=True)
    async with Client(
        server_of([pay], journal=journal), mode=mode, elicitation_callback=person(asked, allow=True)
    ) as client:
        found = await client.call_tool("charge", {"card": CARD})
    assert (found.content[0].text, charged, len(asked)) == ("charged", [CARD], 1)
    assert not [one for one in [*await written(journal), *asked] if CARD in one]


@ERAS
async def test_a_call_that_asks_in_its_middle_is_gone_on_with_as_its_client_said_it(mode):
    charged, asked, journal = [], [], journal_that_redacts()

    @tool
    def charge(card: str, context: ToolContext) -> str:
        """Charges a card."""
        charged.append(card)
        if not context.again:
            raise AsksPerson("Which currency?", again="asked")
        return f"charged in {context.answer}"

    async with Client(
        server_of([charge], journal=journal), mode=mode, elicitation_callback=person(asked, answer="EUR")
    ) as client:
        found = await client.call_tool("charge", {"card": CARD})
    assert (found.is_error, charged, len(asked)) == (False, [CARD, CARD], 1), found
    assert not [one for one in [*await written(journal), *asked] if CARD in one]


async def test_another_process_of_the_server_goes_on_with_it_as_its_client_said_it():
    charged, asked, journal = [], [], journal_that_redacts()
    keyed = {"io.treadle/idempotency-key": "one"}
    pay = till(charged, needs_approval=True)
    async with Client(server_of([pay], journal=journal), elicitation_callback=person(asked)) as client:
        first = await client.session.call_tool("charge", {"card": CARD}, meta=keyed, allow_input_required=True)
    (name,) = first.input_requests
    said = {name: types.ElicitResult(action="accept", content={"allow": True})}
    async with Client(server_of([pay], journal=journal), elicitation_callback=person(asked)) as client:
        found = await client.session.call_tool(
            "charge",
            {"card": CARD},
            meta=keyed,
            input_responses=said,
            request_state=first.request_state,
            allow_input_required=True,
        )
    assert (found.content[0].text, charged) == ("charged", [CARD])
