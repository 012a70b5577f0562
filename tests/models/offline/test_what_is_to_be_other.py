"""A follow-up that says only what is to be other is asked of the question before it, answered or not, or not at all."""

import pytest

from treadle import Agent, Conversation, tool

ROWS = [
    {"invoice": "R-1", "customer": "Nord", "amount": 500.0, "currency": "EUR", "paid": True},
    {"invoice": "R-2", "customer": "Mart", "amount": 320.0, "currency": "EUR", "paid": False},
    {"invoice": "R-3", "customer": "Nord", "amount": 80.0, "currency": "USD", "paid": False},
    {"invoice": "R-4", "customer": "Mart", "amount": 45.0, "currency": "USD", "paid": True},
]


def answer(*questions: str) -> str:
    @tool(effect="read")
    def list_invoices(customer: str | None = None) -> list[dict[str, object]]:
        """Lists the invoices to the customers."""
        return [row for row in ROWS if customer is None or str(row["customer"]).lower() == customer.lower()]

    conversation = Conversation()
    agent = Agent("offline", tools=[list_invoices])
    return [agent.run_sync(question, conversation=conversation).text for question in questions][-1]


@pytest.mark.parametrize(
    ("before", "after", "told", "not_told"),
    [
        ("Which invoices are in USD?", "and for EUR?", ["R-1", "R-2"], ["R-3", "R-4"]),
        ("Which invoices are in EUR?", "and mart only?", ["R-2"], ["R-1", "R-3", "R-4"]),
        # This one alone is refused, as it would add up two currencies.
        ("What is the total of all invoices?", "and in EUR?", ["820"], ["R-3"]),
    ],
)
def test_it_is_asked_of_the_question_before(before: str, after: str, told: list[str], not_told: list[str]) -> None:
    said = answer(before, after)
    assert all(each in said for each in told), said
    assert not any(each in said for each in not_told), said


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # "In EUR" would be what was not asked for.
        ("Show the entries without USD", "and EUR?"),
        ("Show the entries without USD", "and for EUR"),
        ("Tell me a joke", "and EUR?"),
    ],
)
def test_it_is_no_question_of_its_own(before: str, after: str) -> None:
    @tool(effect="read")
    def list_entries(account: str | None = None) -> list[dict[str, object]]:
        """Lists the entries of the ledger, of one account or of all."""
        rows: list[dict[str, object]] = [
            {"id": 71, "debit": "rent", "credit": "bank", "amount": 1200.0, "currency": "EUR"},
            {"id": 72, "debit": "travel", "credit": "cash", "amount": 310.25, "currency": "USD"},
            {"id": 73, "debit": "cash", "credit": "bank", "amount": 800.0, "currency": "EUR"},
        ]
        return [row for row in rows if account is None or account.lower() in (row["debit"], row["credit"])]

    conversation = Conversation()
    agent = Agent("offline", tools=[list_entries])
    agent.run_sync(before, conversation=conversation)
    said = agent.run_sync(after, conversation=conversation).text
    assert not any(each in said for each in ("1200", "310.25", "800")), said


@pytest.mark.parametrize(
    ("after", "hall", "tolerance"),
    [
        ("and with a tolerance of 10000?", 1001, 10000),
        ("and a tolerance of 5?", 1001, 5),
        ("with tolerance 5", 1001, 5),
        ("and for hall 1002 with a tolerance of 5?", 1002, 5),
        ("and 1002?", 1002, None),
    ],
)
def test_the_number_of_an_option_takes_the_place_of_no_other(after: str, hall: int, tolerance: int | None) -> None:
    """The stock of hall 10000 was counted, with no tolerance."""
    asked: list[tuple[int, int | None]] = []

    @tool(effect="read")
    def compare_stock(hall: int, tolerance: int | None = None) -> str:
        """Compares the stock of a hall with the books."""
        asked.append((hall, tolerance))
        return "equal"

    conversation = Conversation()
    agent = Agent("offline", tools=[compare_stock])
    agent.run_sync("Compare the stock of hall 1001 with the books", conversation=conversation)
    agent.run_sync(after, conversation=conversation)
    assert asked == [(1001, None), (hall, tolerance)]
