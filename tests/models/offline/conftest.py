"""A small loop that drives the planner over plain functions, and the toolboxes that the tests offer it."""

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from treadle.kernel.messages import (
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models.offline import OfflineModel
from treadle.models.port import ModelReply, ModelRequest, TextDelta, ToolCallCompleted, ToolCallDelta, ToolCallStarted

TEXT, WHOLE, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


class Failure(Exception):
    """A tool error with its hints."""

    def __init__(self, message: str, **hints: Any) -> None:
        super().__init__(message)
        self.hints = hints


@dataclass
class Bench:
    """Functions as tools: each a spec and what carries it out."""

    specs: list[ToolSpec] = field(default_factory=list)
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def add(
        self, description: str, output: dict[str, Any] | None = None, **params: dict[str, Any]
    ) -> Callable[..., Any]:
        """Registers a function; a parameter of it that has a default is optional."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            signature = inspect.signature(function).parameters
            required = [name for name in params if signature[name].default is inspect.Parameter.empty]
            schema = {"type": "object", "properties": params, "required": required}
            returns = None if output is None else {"type": "object", "properties": output}
            self.specs.append(ToolSpec(function.__name__, description, schema, returns))
            self.functions[function.__name__] = function
            return function

        return register

    def __add__(self, other: "Bench") -> "Bench":
        return Bench(self.specs + other.specs, self.functions | other.functions)

    def call(self, call: ToolCall) -> ToolMessage:
        try:
            arguments = json.loads(call.arguments)
            spec = next(spec for spec in self.specs if spec.name == call.name)
            lacking = set(spec.input_schema["required"]) - set(arguments)
            assert not lacking, f"{call.name} was called without {lacking}"
            result = self.functions[call.name](**arguments)
        except Failure as error:
            content = {"error": True, "message": str(error), **error.hints}
            return ToolMessage(call.id, call.name, json.dumps(content), is_error=True)
        return ToolMessage(call.id, call.name, result if isinstance(result, str) else json.dumps(result))


@dataclass
class Session:
    """A conversation with the planner: its messages, and the calls made for the last question, step by step."""

    bench: Bench
    messages: list[Message] = field(default_factory=list)
    steps: list[list[tuple[str, dict[str, Any]]]] = field(default_factory=list)

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [call for step in self.steps for call in step]

    @property
    def tools(self) -> list[str]:
        return [name for name, _ in self.calls]

    def ask(self, question: str, limit: int = 10) -> str:
        self.messages.append(UserMessage(question))
        self.steps = []
        for _ in range(limit):
            reply = reply_to(self.messages, self.bench)
            self.messages.append(reply.message)
            if not reply.message.calls:
                return reply.message.text
            self.steps.append([(call.name, json.loads(call.arguments)) for call in reply.message.calls])
            self.messages += [self.bench.call(call) for call in reply.message.calls]
        raise AssertionError(f"no answer to {question!r} after {limit} steps: {self.steps}")


def reply_to(messages: list[Message], bench: Bench, tool_choice: str = "auto", **more: Any) -> ModelReply:
    """One reply, with its events checked against the whole."""

    async def collect() -> list[Any]:
        request = ModelRequest(tuple(messages), tuple(bench.specs), tool_choice, **more)
        return [event async for event in OfflineModel().stream(request)]

    *events, last = asyncio.run(collect())
    assert isinstance(last, ModelReply)
    assert last.finish == ("tool_calls" if last.message.calls else "stop")
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.message.text
    opened = [(event.id, event.name) for event in events if isinstance(event, ToolCallStarted)]
    written = {event.id: event.json for event in events if isinstance(event, ToolCallDelta)}
    closed = [event.id for event in events if isinstance(event, ToolCallCompleted)]
    assert opened == [(call.id, call.name) for call in last.message.calls]
    assert closed == [call.id for call in last.message.calls]
    assert written == {call.id: call.arguments for call in last.message.calls}
    return last


def figures(text: str) -> set[str]:
    """The numbers in a text, without grouping and trailing zeros."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return {re.sub(r"(\.\d*?)0+$|\.$", r"\1", number.replace(",", "")).rstrip(".") for number in found}


def check_honest(session: Session, question: str, answer: str) -> None:
    """Every figure of an answer stands in a tool result, in a call, or in what was asked; no call is made twice."""
    seen = " ".join(message.text for message in session.messages[:-1] if not isinstance(message, SystemMessage))
    asked = " ".join(json.dumps(arguments) for _, arguments in session.calls)
    tools = " ".join(spec.name + spec.description for spec in session.bench.specs)
    assert figures(answer) <= figures(f"{seen} {asked} {question} {tools}"), (question, answer)
    assert "not a language model" in answer
    keys = [json.dumps(call, sort_keys=True) for call in session.calls]
    assert len(keys) == len(set(keys)), f"a call was repeated: {keys}"


def pick(kind: str, given: str, names: list[str], nearest: str | None = None) -> str:
    """The name itself, or the error that lists what would be valid."""
    if given in names:
        return given
    raise Failure(f"there is no {kind} '{given}'", argument=kind, given=given, nearest=nearest, available=names)


def shop() -> Bench:
    """A calculator, a clock and a small inventory."""
    bench = Bench()
    stock = {"widget": (150, "19.99"), "gadget": (75, "49.50"), "gizmo": (30, "5.25")}

    @bench.add(
        "Evaluates an arithmetic expression exactly.", expression=TEXT | {"description": "such as '2 * (3 + 4)'"}
    )
    def calculator(expression: str) -> Any:
        assert re.fullmatch(r"[\d.+\-*/%() ]+", expression), expression
        return {"expression": expression, "result": eval(expression)}

    @bench.add(
        "Tells the current date and time in a time zone.",
        {"timezone": TEXT, "time": TEXT},
        timezone=TEXT | {"description": "IANA zone such as Europe/Berlin", "default": "UTC"},
    )
    def current_time(timezone: str = "UTC") -> Any:
        return {"timezone": timezone, "time": "2026-11-21T10:30:00+00:00"}

    names = sorted(stock)
    product = TEXT | {"description": "name of the product"}

    @bench.add(
        "Checks how many units of a product are in stock.", {"product": TEXT, "quantity": WHOLE}, product=product
    )
    def check_stock(product: str) -> Any:
        return {"product": pick("product", product, names), "quantity": stock[product][0]}

    @bench.add(
        "Gets the unit price of a product.",
        {"product": TEXT, "unit_price": TEXT, "currency": TEXT},
        product=product,
    )
    def get_price(product: str) -> Any:
        return {"product": pick("product", product, names), "unit_price": stock[product][1], "currency": "USD"}

    @bench.add(
        "Calculates the total value of a quantity of a product.",
        {"product": TEXT, "quantity": WHOLE, "unit_price": TEXT, "total": TEXT, "currency": TEXT},
        product=product,
        quantity=WHOLE | {"description": "how many units"},
    )
    def calculate_total(product: str, quantity: int) -> Any:
        from decimal import Decimal

        unit = Decimal(stock[pick("product", product, names)][1])
        total = str(unit * quantity)
        return {"product": product, "quantity": quantity, "unit_price": str(unit), "total": total, "currency": "USD"}

    return bench


SOURCES = {
    "fi_reporting": ("Group reporting of the finance department", ["company", "period", "account", "currency"]),
    "bpc_reporting": ("Planning and consolidation extract", ["company", "period", "account", "currency"]),
    "consolidation_mart": ("Consolidated figures", ["company", "period", "account", "currency"]),
}


def analyst() -> Bench:
    """Sources to list, query and compare."""
    bench = Bench()
    names = sorted(SOURCES)
    filters = {
        "type": "array",
        "items": {"$ref": "#/$defs/Filter"},
        "default": [],
        "description": "conditions that all must hold",
    }
    defs = {
        "Filter": {
            "type": "object",
            "properties": {
                "dimension": TEXT,
                "op": {"enum": ["=", "!=", "in", "between", ">", "<", ">=", "<="], "default": "="},
                "value": {"anyOf": [TEXT, WHOLE, {"type": "array", "items": TEXT}, {"type": "null"}]},
            },
            "required": ["dimension"],
        }
    }
    listing = {"type": "array", "items": TEXT}
    tuples = {
        "sources": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": TEXT, "dimensions": listing, "measures": listing}},
        }
    }

    @bench.add("Lists the sources there are, with their dimensions and measures.", tuples)
    def list_sources() -> Any:
        return {
            "sources": [
                {
                    "name": name,
                    "description": about,
                    "dimensions": [{"name": dimension, "type": "text"} for dimension in dimensions],
                    "measures": [{"name": "amount", "type": "decimal"}],
                }
                for name, (about, dimensions) in SOURCES.items()
            ]
        }

    def check(dimensions: list[str], measures: list[str], conditions: list[dict[str, Any]]) -> None:
        known = SOURCES["fi_reporting"][1]
        for dimension in [*dimensions, *(condition["dimension"] for condition in conditions)]:
            pick("dimension", dimension, known)
        for measure in measures:
            pick("measure", measure, ["amount"])

    @bench.add(
        "Queries one source: totals of measures, grouped by dimensions and filtered.",
        {"rows": {"type": "array"}},
        source=TEXT,
        measures=listing,
        dimensions=listing | {"default": []},
        filters=filters,
        limit=WHOLE | {"default": 50},
    )
    def query_source(source: str, measures: Any, dimensions: Any = (), filters: Any = (), limit: int = 50) -> Any:
        pick("source", source, names)
        check(dimensions, measures, filters)
        keys = {dimension: "4000" for dimension in dimensions}
        return {"source": source, "rows": [{**keys, "amount": "1492000.00"}], "row_count": 1}

    @bench.add(
        "Compares measures of two sources, key by key, and classifies the differences.",
        {"summary": {"type": "object"}, "interpretation": TEXT},
        source_a=TEXT,
        source_b=TEXT,
        measures=listing,
        dimensions=listing | {"default": []},
        filters=filters,
        top=WHOLE | {"default": 10},
    )
    def compare_sources(
        source_a: str, source_b: str, measures: Any, dimensions: Any = (), filters: Any = (), top: int = 10
    ) -> Any:
        for argument, source in (("source_a", source_a), ("source_b", source_b)):
            if source not in names:
                raise Failure(f"there is no source '{source}'", argument=argument, given=source, available=names)
        check(dimensions, measures, filters)
        return {
            "summary": {
                "total_rows": 1,
                "matches": 0,
                "total_source_a": "1500000.00",
                "total_source_b": "1492000.00",
                "total_diff": "8000.00",
            },
            "top_differences": [{"account": "4000", "amount_a": "900000.00", "amount_b": "892000.00"}],
            "interpretation": f"{source_a} has 1,500,000.00 and {source_b} 1,492,000.00: a difference of 8,000.00.",
        }

    for place, spec in enumerate(bench.specs):
        bench.specs[place] = ToolSpec(
            spec.name, spec.description, {**spec.input_schema, "$defs": defs}, spec.output_schema
        )
    return bench


def weather() -> Bench:
    bench = Bench()

    @bench.add(
        "Current weather of a city.",
        {"city": TEXT, "temperature": NUMBER, "conditions": TEXT},
        city=TEXT | {"description": "City name, e.g. Paris"},
        units={"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
    )
    def get_weather(city: str, units: str = "celsius") -> Any:
        degrees = {"Paris": 14.5, "London": 11.0, "New York": 7.5, "Oslo": -2.0}
        pick("city", city, list(degrees))
        return {"city": city, "temperature": degrees[city], "conditions": "cloudy", "units": units}

    @bench.add(
        "Weather forecast of a city for the next days.",
        {"city": TEXT, "forecast": {"type": "array"}},
        city=TEXT,
        days=WHOLE | {"description": "number of days ahead"},
    )
    def get_forecast(city: str, days: int) -> Any:
        return {"city": city, "forecast": [{"day": "2026-11-22", "high": 9.5}][:days]}

    return bench


def people() -> Bench:
    bench = Bench()
    ids = {"Maria Lopez": 17, "John Smith": 23}

    @bench.add(
        "Finds an employee by name.",
        {"employee_id": WHOLE, "name": TEXT, "department": TEXT},
        name=TEXT | {"description": "full or part of the name"},
    )
    def find_employee(name: str) -> Any:
        for full, number in ids.items():
            if name.lower() in full.lower():
                return {"employee_id": number, "name": full, "department": "Sales"}
        raise Failure(f"no employee is called '{name}'", argument="name", given=name, available=list(ids))

    @bench.add(
        "Tells how many vacation days an employee has left.",
        {"employee_id": WHOLE, "days_left": WHOLE, "year": WHOLE},
        employee_id=WHOLE,
    )
    def get_vacation_balance(employee_id: int) -> Any:
        return {"employee_id": employee_id, "days_left": {17: 12, 23: 3}[employee_id], "year": 2026}

    @bench.add(
        "Requests vacation for an employee.",
        {"status": TEXT},
        employee_id=WHOLE,
        days=WHOLE,
        start_date={"type": "string", "format": "date"},
    )
    def request_vacation(employee_id: int, days: int, start_date: str) -> Any:
        return {"employee_id": employee_id, "days": days, "start_date": start_date, "status": "requested"}

    return bench


def library() -> Bench:
    bench = Bench()

    @bench.add(
        "Searches the catalogue for books.",
        {"books": {"type": "array", "items": {"type": "object", "properties": {"book_id": TEXT, "title": TEXT}}}},
        title=TEXT | {"default": ""},
        author=TEXT | {"default": ""},
    )
    def search_books(title: str = "", author: str = "") -> Any:
        books = [
            {"book_id": "B-7", "title": "Dune", "author": "Frank Herbert", "year": 1965},
            {"book_id": "B-9", "title": "The Hobbit", "author": "J. R. R. Tolkien", "year": 1937},
        ]
        return {"books": [book for book in books if title in book["title"] and author in book["author"]]}

    @bench.add(
        "Tells whether a book is available and when it is due back.",
        {"book_id": TEXT, "available": FLAG, "due_date": TEXT},
        book_id=TEXT | {"description": "number of the book, such as B-1"},
    )
    def check_availability(book_id: str) -> Any:
        return {"book_id": book_id, "available": book_id == "B-7", "due_date": "2026-12-01"}

    @bench.add("Renews the loan of a book.", {"due_date": TEXT}, book_id=TEXT)
    def renew_loan(book_id: str) -> Any:
        return {"book_id": book_id, "due_date": "2026-12-15"}

    return bench


def money() -> Bench:
    bench = Bench()
    codes = ["EUR", "GBP", "JPY", "USD"]

    @bench.add(
        "Converts an amount from one currency to another.",
        {"amount": TEXT, "converted": TEXT, "rate": TEXT},
        amount=NUMBER,
        from_currency=TEXT | {"description": "ISO code"},
        to_currency=TEXT | {"description": "ISO code"},
    )
    def convert_currency(amount: float, from_currency: str, to_currency: str) -> Any:
        for argument, code in (("from_currency", from_currency), ("to_currency", to_currency)):
            if code not in codes:
                raise Failure(f"unknown currency {code}", argument=argument, given=code, available=codes)
        return {"amount": str(amount), "from_currency": from_currency, "to_currency": to_currency, "converted": "92.40"}

    @bench.add("Lists the currencies that can be converted.", {"currencies": {"type": "array"}})
    def list_currencies() -> Any:
        return {"currencies": codes}

    return bench


def tickets() -> Bench:
    bench = Bench()

    @bench.add(
        "Gets a ticket with its status and assignee.",
        {"ticket_id": WHOLE, "status": TEXT, "assignee": TEXT},
        ticket_id=WHOLE,
    )
    def get_ticket(ticket_id: int) -> Any:
        return {"ticket_id": ticket_id, "title": "Printer is jammed", "status": "open", "assignee": "Ana"}

    @bench.add(
        "Searches tickets by text.",
        {"tickets": {"type": "array"}},
        query=TEXT,
        status={"type": "string", "enum": ["open", "closed"], "default": "open"},
    )
    def search_tickets(query: str, status: str = "open") -> Any:
        return {"tickets": [{"ticket_id": 42, "title": "Printer is jammed", "status": status}]}

    @bench.add(
        "Creates a ticket.",
        {"ticket_id": WHOLE},
        title=TEXT,
        priority={"type": "string", "enum": ["low", "normal", "high"], "default": "normal"},
    )
    def create_ticket(title: str, priority: str = "normal") -> Any:
        return {"ticket_id": 99, "title": title, "priority": priority}

    @bench.add("Closes a ticket.", {"ticket_id": WHOLE, "status": TEXT}, ticket_id=WHOLE)
    def close_ticket(ticket_id: int) -> Any:
        return {"ticket_id": ticket_id, "status": "closed"}

    return bench


BENCHES = {
    "shop": shop,
    "analyst": analyst,
    "weather": weather,
    "people": people,
    "library": library,
    "money": money,
    "tickets": tickets,
    "everything": lambda: shop() + analyst() + weather() + people() + library() + money() + tickets(),
}


@pytest.fixture
def start() -> Callable[[Bench], Session]:
    """Starts a conversation over a toolbox."""
    return Session


@pytest.fixture
def toolbox() -> Callable[[str], Bench]:
    """A toolbox by name."""
    return lambda name: BENCHES[name]()


@pytest.fixture
def ask() -> Callable[..., tuple[str, Session]]:
    """Asks the toolboxes named one or more questions in one conversation; the last answer, checked for honesty."""

    def asking(names: str, *questions: str) -> tuple[str, Session]:
        bench = Bench()
        for name in names.split("+"):
            bench = bench + BENCHES[name]()
        session = Session(bench)
        for question in questions:
            answer = session.ask(question)
            check_honest(session, question, answer)
        return answer, session

    return asking


@pytest.fixture
def reply() -> Callable[..., ModelReply]:
    return reply_to


@pytest.fixture
def bench() -> Callable[..., Bench]:
    """Makes a toolbox of specs alone."""
    return lambda specs=(): Bench(list(specs))
