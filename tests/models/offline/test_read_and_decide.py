"""What nothing but the records can tell is read; each word is held against the fields and the values that are there."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED

CHANGED: list[tuple[Any, ...]] = []


def list_books() -> list[dict[str, Any]]:
    """Lists all books of the library, with author, year, copies, shelf and whether they are available."""
    rows = [
        ("Dune", "Frank Herbert", 1965, 3, "S4", True),
        ("Emma", "Jane Austen", 1815, 1, "C2", False),
        ("Persuasion", "Jane Austen", 1817, None, "C2", True),
    ]
    return [dict(zip(("title", "author", "year", "copies", "shelf", "available"), row, strict=True)) for row in rows]


def member_fines(member: str) -> dict[str, Any]:
    """Tells the fines that a member of the library owes."""
    return {"member": member, "fines_eur": 4.2, "overdue_items": 2}


def rooms() -> list[dict[str, Any]]:
    """The hotel's rooms: number, floor, size, balcony, and whether they are free."""
    return [
        {"room": 101, "floor": 1, "size_m2": 14, "balcony": False, "free": True},
        {"room": 201, "floor": 2, "size_m2": 21, "balcony": True, "free": True},
        {"room": 202, "floor": 2, "size_m2": 30, "balcony": True, "free": False},
    ]


def employees() -> list[dict[str, Any]]:
    """All employees with department and manager."""
    return [
        {"name": "Wei Chen", "department": "Sales", "manager": "Olaf"},
        {"name": "Olaf", "department": "Sales", "manager": None},
    ]


def get_ticket(ticket_id: int) -> dict[str, Any]:
    """Gets a support ticket."""
    return {"id": ticket_id, "subject": "Login broken", "assignee": "ira", "opened": "2026-11-02"}


def get_invoice(invoice_id: int) -> dict[str, Any]:
    """Gets an invoice."""
    return {"id": invoice_id, "total": 77.0, "due": "2026-12-15"}


def stock(product: str, warehouse: str) -> int:
    """How many pieces of a product a warehouse has in stock."""
    return {("bolts", "hull"): 500}[product.lower(), warehouse.lower()]


@tool(effect="write")
def charge(member: str, amount: float) -> str:
    """Charges a member an amount in EUR."""
    CHANGED.append((member, amount))
    return "charged"


@tool(effect="write")
def transfer(from_account: str, to_account: str, amount: float) -> str:
    """Transfers an amount from one account to another."""
    CHANGED.append((from_account, to_account, amount))
    return "done"


@tool(effect="write")
def log_call(customer_id: int, note: str) -> str:
    """Logs a phone call with a customer."""
    CHANGED.append((customer_id, note))
    return "logged"


def asked(question: str, *functions: Any) -> RunResult:
    CHANGED.clear()
    tools = [each if hasattr(each, "spec") else tool(each) for each in functions]
    return Agent("offline", tools=tools).run_sync(question)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Where is Emma?", "shelf C2"),
        ("who wrote Emma", "author Jane Austen"),
        ("how many books aren't available?", "1 of the 3"),
        ("How many books by Jane Austen do we have?", "2 of the 3"),
        ("all books except Dune", "title not Dune"),
        ("How many copies are there in total?", "Sum of copies: 4 (of 2 that list_books tells of; 1 without)"),
        ("Which book has the most copies?", "Highest copies: 3 (1 without)"),
        ("which book has no copies", "1 of the 3 that list_books tells of (copies none)"),
    ],
)
def test_what_a_list_knows_is_told(question: str, told: str) -> None:
    assert told in asked(question, list_books, member_fines).text


@pytest.mark.parametrize(
    "question",
    [
        "Who borrowed Emma?",
        "Who has Emma?",
        "Who is Emma?",
        "Where is Jane Austen?",
        "Where is Emma printed?",
        "When is Emma due back?",
        "Which book is the best?",
    ],
)
def test_what_a_list_does_not_know_is_not_told(question: str) -> None:
    assert DECLINED.search(asked(question, list_books, member_fines).text)


@pytest.mark.parametrize(
    "question",
    [
        "Who does Wei Chen manage?",
        "Who is managed by Wei Chen?",
        "Who is Wei Chen the manager of?",
        "Who is Wei Chen?",
    ],
)
def test_whom_somebody_manages_is_not_his_manager(question: str) -> None:
    assert "manager Olaf" in asked("Who manages Wei Chen?", employees).text
    assert DECLINED.search(asked(question, employees).text)


@pytest.mark.parametrize("question", ["free rooms", "rooms free", "Rooms with a balcony", "rooms on floor 2"])
def test_some_of_a_list_are_not_all_of_it(question: str) -> None:
    text = asked(question, rooms).text
    assert text.startswith("2 of the 3 that rooms tells of")
    assert ("101" in text) == ("free" in question)


def test_a_unit_tells_what_is_bounded() -> None:
    assert "2 of the 3" in asked("rooms over 20 m2", rooms).text


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("when is invoice 7 due?", "due 2026-12-15"),
        ("who is ticket 5 assigned to?", "assignee ira"),
        ("Show ticket 5. Invoice 7.", "total 77.0"),
        ("show ticket 5 and invoice 7", "Login broken"),
    ],
)
def test_what_a_record_knows_is_told(question: str, told: str) -> None:
    assert told in asked(question, get_ticket, get_invoice).text


@pytest.mark.parametrize("question", ["who assigned ticket 5?", "when was ticket 5 closed?", "who opened ticket 5?"])
def test_who_did_it_is_not_whom_it_was_done_to(question: str) -> None:
    assert DECLINED.search(asked(question, get_ticket, get_invoice).text)


def test_a_name_that_is_known_in_the_plural_only_is_found() -> None:
    assert "500" in asked("How many bolts are in Hull?", stock).text


@pytest.mark.parametrize("letter", ["m", "t", "s", "d"])
def test_a_letter_behind_a_number_is_no_ending_of_a_word(letter: str) -> None:
    asked(f"transfer 2 {letter} from checking to savings", transfer)
    assert CHANGED == []


@pytest.mark.parametrize(
    ("order", "done"),
    [
        ("Charge Ida 12.50 and Gus 8", [("Ida", 12.5), ("Gus", 8)]),
        ("Please charge Ida 12.50, Gus 8 and Ann 3.", [("Ida", 12.5), ("Gus", 8), ("Ann", 3)]),
        ("Charge Ida 5 and refund Gus 8", []),
        ("Charge Ida 5 and Gus 8 euros", []),
        ("Charge Ida 5 and Gus 8?", []),
        ("Charge Ida 5 or Gus 8", []),
        ("Don't charge Ida 5 and Gus 8", []),
    ],
)
def test_orders_that_differ_in_their_values_are_one_each(order: str, done: list[tuple[str, float]]) -> None:
    asked(order, charge)
    assert done == CHANGED


def test_a_note_may_stand_behind_a_colon() -> None:
    asked("Log a call with customer 88: asked for a discount", log_call)
    assert CHANGED == [(88, "asked for a discount")]


def test_where_a_thing_is_a_harbor_tells_and_not_a_berth_alone() -> None:
    boats = [{"boat": "Alba", "harbor": "Kiel", "berth": 12}, {"boat": "Cora", "harbor": "Rostock", "berth": 8}]

    def list_harbored() -> list[dict[str, Any]]:
        """All boats with their harbor."""
        return [{"boat": each["boat"], "harbor": each["harbor"]} for each in boats]

    def list_berthed() -> list[dict[str, Any]]:
        """All boats with harbor and berth."""
        return boats

    assert "harbor Rostock" in asked("Where is Cora?", tool(effect="read")(list_harbored)).text
    both = asked("Where is Cora?", tool(effect="read")(list_berthed)).text
    assert "Rostock" in both or DECLINED.search(both)
