"""Records that a tool lists are counted, compared and summed up where the question says so, and in no other case."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, tool

from .asked.judge import DECLINED

PRODUCTS = [
    {"name": "Kettle", "category": "kitchen", "price": 39.9, "stock": 12, "currency": "EUR"},
    {"name": "Toaster", "category": "kitchen", "price": 24.5, "stock": 0, "currency": "EUR"},
    {"name": "Rug", "category": "living", "price": 149.0, "stock": 2, "currency": "EUR"},
]
EMPLOYEES = [
    {"name": "Ana", "department": "Sales", "salary": 52000, "hired": "2019-04-01"},
    {"name": "Bo", "department": "Sales", "salary": 48000, "hired": "2022-09-15"},
    {"name": "Cy", "department": "IT", "salary": 61000, "hired": "2017-01-10"},
]


@dataclass
class Order:
    order_id: int
    customer: str
    status: str
    total: float
    placed_on: str
    paid: bool


ORDERS = [
    Order(101, "Meyer", "open", 120.0, "2026-03-02", True),
    Order(102, "Khan", "shipped", 45.5, "2026-01-15", False),
    Order(103, "Meyer", "open", 80.0, "2026-04-20", False),
]


@tool(effect="read")
def list_products() -> list[dict[str, Any]]:
    """All products of the shop, with price and stock."""
    return PRODUCTS


@tool(effect="read")
def get_orders() -> list[Order]:
    """List all orders."""
    return ORDERS


@tool(effect="read")
def list_employees(department: str | None = None) -> list[dict[str, Any]]:
    """List employees, optionally only those of one department."""
    return [each for each in EMPLOYEES if department in (None, each["department"])]


@tool(effect="read")
def search_flights(origin: str, destination: str) -> list[dict[str, Any]]:
    """Search flights between two cities."""
    way = {"origin": origin, "destination": destination}
    return [{"number": "LH1", **way, "price": 210.0, "stops": 0}, {"number": "AF2", **way, "price": 149.0, "stops": 1}]


@tool(effect="read")
def list_bills(status: Literal["paid", "unpaid"] = "unpaid") -> list[dict[str, Any]]:
    """Lists bills."""
    return [{"bill": "B1", "amount": 10, "status": status}]


@tool(effect="read")
def list_visits(limit: int = 2) -> list[dict[str, Any]]:
    """Lists visits."""
    return [{"visit": 1, "minutes": 10}, {"visit": 2, "minutes": 30}]


@tool(effect="read")
def list_offers() -> list[dict[str, Any]]:
    """Lists offers, with price."""
    return [{"offer": "A", "price": 1.5, "currency": "EUR"}, {"offer": "B", "price": 1.4, "currency": "GBP"}]


@tool(effect="read")
def list_calls() -> dict[str, Any]:
    """Lists phone calls."""
    return {"calls": [{"call": 1, "minutes": 4}, {"call": 2, "minutes": 6}], "total": 90, "next_page": 2}


@tool(effect="read")
def list_tickets() -> list[dict[str, Any]]:
    """Lists tickets."""
    return [
        {"id": 1, "title": "Slow", "reporter": "Mia", "assignee": "Raj"},
        {"id": 2, "title": "Typo", "reporter": "Raj", "assignee": "Mia"},
        {"id": 3, "title": "Crash", "reporter": "Eve", "assignee": "Raj"},
    ]


@tool(effect="read")
def list_songs() -> list[str]:
    """The songs of the playlist, in order."""
    return ["Hurt", "Jolene", "Zombie"]


@tool(effect="read")
def list_servers() -> list[dict[str, Any]]:
    """Lists servers, with their memory in GB."""
    return [
        {"host": "web-1", "region": "eu", "memory_gb": 4},
        {"host": "web-2", "region": "us", "memory_gb": 8},
        {"host": "db-1", "region": "us", "memory_gb": 64},
    ]


TOOLS = {
    "servers": list_servers,
    "songs": list_songs,
    "products": list_products,
    "orders": get_orders,
    "employees": list_employees,
    "flights": search_flights,
    "bills": list_bills,
    "visits": list_visits,
    "offers": list_offers,
    "calls": list_calls,
    "tickets": list_tickets,
}


def asked(of: str, *questions: str) -> str:
    agent, conversation = Agent("offline", tools=[TOOLS[of]]), Conversation()
    return [agent.run_sync(question, conversation=conversation).text for question in questions][-1]


@pytest.mark.parametrize(
    ("of", "question", "told"),
    [
        ("products", "Which product is the most expensive?", "Highest price: 149.0 EUR"),
        ("products", "What is the cheapest product?", "Toaster"),
        ("products", "What is the category of the cheapest kitchen product?", "category kitchen; price 24.5"),
        ("products", "What is the average price of the products?", "Average of price: 71.13 EUR, rounded (of 3"),
        ("products", "What is the average price of kitchen products?", "32.2 EUR (of 2 of the 3"),
        ("products", "What is the average price of the Kettle and the Rug?", "94.45 EUR (of 2"),
        ("products", "What is the total stock?", "Sum of stock: 14 (of 3"),
        ("products", "How many products are out of stock?", "1 of the 3"),
        ("products", "How many products cost more than 30?", "2 of the 3"),
        ("products", "How many products have less than 5 in stock?", "2 of the 3"),
        ("products", "How much more does the Rug cost than the Kettle?", "Difference: 109.1 EUR (Rug has more)"),
        ("products", "What is the price difference between the Toaster and the Kettle?", "15.4 EUR (Kettle has more)"),
        ("products", "How many products are in stock?", "2 of the 3"),
        ("products", "Which is the cheapest product in stock?", "Lowest price: 39.9 EUR (of those with stock above 0)"),
        ("products", "Which products cost between 20 and 40?", "2 of the 3"),
        ("orders", "How many orders were placed between 2026-02-01 and 2026-04-20?", "2 of the 3"),
        ("orders", "Which is the oldest order?", "Earliest placed on: 2026-01-15"),
        ("orders", "How many orders are open?", "2 of the 3"),
        ("orders", "How many orders have been shipped?", "1 of the 3"),
        ("orders", "How many orders are still open?", "2 of the 3"),
        ("orders", "How many open orders are there in total?", "2 of the 3"),
        ("orders", "How many orders are not paid?", "2 of the 3"),
        ("orders", "How many orders does Meyer have?", "2 of the 3"),
        ("orders", "What is the largest order of Meyer?", "Highest total: 120.0"),
        ("orders", "What is the total of all open orders?", "Sum of total: 200.0 (of 2 of the 3"),
        ("orders", "What is the customer of order 102?", "order id 102: customer Khan"),
        ("orders", "What are the totals of orders 101 and 103?", "total 120.0; order id 103: total 80.0"),
        ("orders", "How many orders were placed after 2026-02-01?", "2 of the 3"),
        ("employees", "What is the average salary in IT?", "61,000 (of 1 of the 3"),
        ("employees", "How many people work in Sales?", "2 "),
        ("employees", "Who earns the most?", "Highest salary: 61000"),
        ("employees", "Who was hired first?", "Earliest hired: 2017-01-10"),
        ("employees", "Who earns more than 50000?", "2 of the 3"),
        ("flights", "What is the cheapest flight from Berlin to Rome?", "AF2"),
        ("flights", "What is the cheapest flight from Berlin to Rome without stops?", "210"),
        ("songs", "What are songs 1 and 3?", "item 1: Hurt; item 3: Zombie"),
        ("songs", "What is the second song?", "item 2: Jolene"),
        ("servers", "What is the total memory of the eu servers?", "4 (of 1 of the 3"),
        ("servers", "What is the total memory of the US servers?", "72 (of 2 of the 3"),
        ("songs", "What is the last song?", "item 3: Zombie"),
        ("flights", "How many flights from Berlin to Rome cost more than 200?", "1 of the 2"),
    ],
)
def test_what_is_asked_of_records_is_worked_out(of: str, question: str, told: str) -> None:
    assert told in asked(of, question)


@pytest.mark.parametrize(
    ("of", "question"),
    [
        ("products", "Which product is the heaviest?"),
        ("products", "What is the second cheapest product?"),
        ("products", "What is the total price of 2 Rugs?"),
        ("products", "How many products cost more than 30 dollars?"),
        ("products", "How many products cost less than the Rug?"),
        ("orders", "How many orders are open or shipped?"),
        ("products", "How many products are between 20 and 40?"),
        ("products", "How many products are in stock in Berlin?"),
        ("orders", "How many orders are open and shipped?"),
        ("orders", "How many orders were open?"),
        ("orders", "How many orders has Khan shipped?"),
        ("orders", "How many orders are open today?"),
        ("orders", "How many orders had been shipped?"),
        ("orders", "Which customer has the most orders?"),
        ("employees", "Who is the oldest employee?"),
        ("employees", "What is the average salary in it?"),
        ("employees", "What is the average salary per department?"),
        ("employees", "How many employees were hired?"),
        ("flights", "What is the cheapest flight to Rome?"),
        ("bills", "What is the total amount of the bills?"),
        ("servers", "Which server has the lowest memory in us?"),
        ("orders", "How many orders in us are there?"),
        ("orders", "What is the total total of the orders in us?"),
        ("employees", "What is the average salary of Total?"),
        ("songs", "What is the fifth song?"),
        ("songs", "What are songs 2 and 4?"),
        ("songs", "What is the second best song?"),
        ("visits", "What is the average number of minutes of the visits?"),
        ("offers", "Which offer is the cheapest?"),
        ("offers", "What is the average price of the offers?"),
        ("calls", "What is the average number of minutes of the calls?"),
        ("tickets", "How many tickets does Mia have?"),
        ("tickets", "How many tickets does Eve have?"),
    ],
)
def test_a_word_that_the_records_do_not_explain_forbids_it(of: str, question: str) -> None:
    text = asked(of, question)
    assert DECLINED.search(text)
    assert not any(word in text for word in ("Average", "Sum", "Highest", "Lowest", "Earliest"))
    assert not re.search(r"\d of the \d", text)


def test_of_them_is_not_of_all_where_some_were_told() -> None:
    assert "I cannot" in asked("orders", "How many orders are open?", "How many of them are paid?")
    assert "I cannot" in asked("orders", "Which orders grow?", "How many of them are paid?")
    assert "1 of the 3" in asked("orders", "How many orders are open?", "How many orders are paid?")


@tool(effect="read")
def donations() -> list[dict[str, Any]]:
    """Donations to the charity."""
    return [
        {"donor": "Ruth", "amount": 100.0, "project": "Wells"},
        {"donor": "Sven", "amount": 40.0, "project": "Trees"},
    ]


def test_donations_are_not_done() -> None:
    """Regression: a tool whose name begins as "done" does was taken for the one to hand in the answer with."""
    result = Agent("offline", tools=[donations]).run_sync("What is the sum of the donations for Wells?")
    assert "100" in result.text
