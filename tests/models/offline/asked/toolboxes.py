"""The tools that the planner is asked about: plain functions that compute what they are asked for, and no more."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

from treadle import Tool, tool
from treadle.tools.builtin import calculator, current_time

STOCK = {"widgets": 150, "gadgets": 75, "gizmos": 42, "doohickeys": 200}
PRICES = {"widgets": "12.50", "gadgets": "24.99", "gizmos": "8.75", "doohickeys": "3.20"}


def _known(name: str) -> str:
    plain = name.strip().lower()
    for key in (plain, f"{plain}s"):
        if key in STOCK:
            return key
    raise ValueError(f"there is no item {name!r} (there are: {', '.join(STOCK)})")


def exercise() -> list[Callable[..., Any]]:
    def check_stock(item_name: str) -> int:
        """Check how many units of an item are in stock."""
        return STOCK[_known(item_name)]

    def get_price(item_name: str) -> float:
        """Get the unit price of an item."""
        return float(PRICES[_known(item_name)])

    def calculate_total(quantity: int, unit_price: float) -> float:
        """Calculate the total cost of a quantity at a unit price."""
        return float(Decimal(str(unit_price)) * quantity)

    return [check_stock, get_price, calculate_total]


def kiosk() -> list[Callable[..., Any]]:
    def cost_of(price_each: Decimal, count: int) -> str:
        """Works out what a number of pieces costs together."""
        return str(price_each * count)

    def price_of(article: str) -> dict[str, str]:
        """Tells the price of one article."""
        return {"article": _known(article), "price": PRICES[_known(article)]}

    def stock_level(article: str) -> dict[str, Any]:
        """Tells how many pieces of an article are in stock."""
        return {"article": _known(article), "pieces": STOCK[_known(article)]}

    return [cost_of, price_of, stock_level]


def depot() -> list[Callable[..., Any]]:
    def lookup_unit_price(sku: str) -> dict[str, float]:
        """Looks up the unit price of a product by its sku."""
        return {"unit_price": float(PRICES[_known(sku)])}

    def total_price(unit_price: float, qty: int) -> dict[str, str]:
        """Multiplies a unit price by a quantity."""
        return {"total": str(Decimal(str(unit_price)) * qty)}

    def count_inventory(sku: str) -> dict[str, int]:
        """Counts the inventory of a product by its sku."""
        return {"qty": STOCK[_known(sku)]}

    return [lookup_unit_price, total_price, count_inventory]


def reckoner() -> list[Callable[..., Any]]:
    def add(a: float, b: float) -> float:
        """Adds two numbers."""
        return a + b

    def subtract(a: float, b: float) -> float:
        """Subtracts b from a."""
        return a - b

    def multiply(a: float, b: float) -> float:
        """Multiplies two numbers."""
        return a * b

    def divide(a: float, b: float) -> float:
        """Divides a by b."""
        return a / b

    return [add, subtract, multiply, divide]


Length = Literal["km", "miles", "meters", "feet", "inches", "cm"]
IN_METERS = {"km": 1000.0, "miles": 1609.344, "meters": 1.0, "feet": 0.3048, "inches": 0.0254, "cm": 0.01}
RATES = {"EUR": 1.0, "USD": 1.1, "GBP": 0.85, "JPY": 160.0, "CHF": 0.95}


def converters() -> list[Callable[..., Any]]:
    def convert_length(value: float, from_unit: Length, to_unit: Length) -> dict[str, Any]:
        """Converts a length from one unit to another."""
        return {"value": round(value * IN_METERS[from_unit] / IN_METERS[to_unit], 4), "unit": to_unit}

    def convert_currency(amount: float, from_currency: str, to_currency: str) -> dict[str, Any]:
        """Converts an amount of money from one currency to another."""
        return {"converted": round(amount / RATES[from_currency] * RATES[to_currency], 2), "currency": to_currency}

    def celsius_to_fahrenheit(celsius: float) -> float:
        """Converts a temperature in degrees Celsius to Fahrenheit."""
        return celsius * 9 / 5 + 32

    return [convert_length, convert_currency, celsius_to_fahrenheit]


def texts() -> list[Callable[..., Any]]:
    def count_words(text: str) -> int:
        """Counts the words of a text."""
        return len(text.split())

    def reverse_text(text: str) -> str:
        """Reverses a text."""
        return text[::-1]

    def to_upper(text: str) -> str:
        """Writes a text in upper case."""
        return text.upper()

    def count_letter(text: str, letter: str) -> int:
        """Counts how often a letter occurs in a text."""
        return text.lower().count(letter.lower())

    def replace_word(text: str, old: str, new: str) -> str:
        """Replaces an old word by a new one in a text."""
        return text.replace(old, new)

    return [count_words, reverse_text, to_upper, count_letter, replace_word]


ROOMS = [
    {"room": "Aspen", "floor": 1, "seats": 4, "projector": False},
    {"room": "Birch", "floor": 2, "seats": 8, "projector": True},
    {"room": "Cedar", "floor": 2, "seats": 12, "projector": True},
    {"room": "Dogwood", "floor": 3, "seats": 20, "projector": False},
]


def rooms() -> list[Callable[..., Any]]:
    def list_rooms(
        floor: int | None = None, min_seats: int | None = None, projector: bool | None = None
    ) -> dict[str, Any]:
        """Lists meeting rooms.

        Args:
            floor: only rooms on this floor.
            min_seats: only rooms with at least so many seats.
            projector: only rooms with a projector (true) or without one (false).
        """
        found = [
            room
            for room in ROOMS
            if floor in (None, room["floor"])
            and (min_seats is None or int(room["seats"]) >= min_seats)
            and projector in (None, room["projector"])
        ]
        return {"rooms": found}

    def book_room(room: str, date: str, hours: int = 1) -> dict[str, Any]:
        """Books a meeting room.

        Args:
            room: the room's name.
            date: the day, as YYYY-MM-DD.
            hours: for how many hours.
        """
        return {"booked": room, "date": date, "hours": hours}

    return [list_rooms, book_room]


ORDERS = [
    {"order": 501, "customer": "Acme", "status": "open", "total": 90, "date": "2024-01-10"},
    {"order": 502, "customer": "Acme", "status": "shipped", "total": 250, "date": "2024-02-11"},
    {"order": 503, "customer": "Globex", "status": "open", "total": 480, "date": "2024-03-12"},
    {"order": 504, "customer": "Initech", "status": "cancelled", "total": 35, "date": "2024-03-30"},
]


def orders() -> list[Callable[..., Any]]:
    def search_orders(
        customer: str | None = None,
        status: Literal["open", "shipped", "cancelled"] | None = None,
        min_total: float | None = None,
        max_total: float | None = None,
        date_from: str | None = None,
        date_to: str | None = None,
        limit: int = 20,
    ) -> dict[str, Any]:
        """Searches orders.

        Args:
            customer: only orders of this customer.
            status: only orders with this status.
            min_total: only orders of at least this total.
            max_total: only orders of at most this total.
            date_from: only orders from this day on, as YYYY-MM-DD.
            date_to: only orders up to this day, as YYYY-MM-DD.
            limit: most orders to return.
        """
        found = [
            order
            for order in ORDERS
            if customer in (None, order["customer"])
            and status in (None, order["status"])
            and (min_total is None or float(str(order["total"])) >= min_total)
            and (max_total is None or float(str(order["total"])) <= max_total)
            and (date_from is None or str(order["date"]) >= date_from)
            and (date_to is None or str(order["date"]) <= date_to)
        ]
        return {"orders": found[:limit]}

    def cancel_order(order_id: int) -> dict[str, Any]:
        """Cancels an order."""
        return {"order_id": order_id, "status": "cancelled"}

    return [search_orders, cancel_order]


PEOPLE = {"Maria Lopez": (17, "Sales", 12), "John Smith": (23, "Finance", 3), "Aiko Tanaka": (31, "Sales", 20)}


def staff() -> list[Callable[..., Any]]:
    def find_employee(name: str) -> dict[str, Any]:
        """Finds an employee by name and tells the id and the department."""
        for full, (number, department, _) in PEOPLE.items():
            if name.lower() in full.lower():
                return {"employee_id": number, "name": full, "department": department}
        raise ValueError(f"no employee is called {name!r}")

    def vacation_balance(employee_id: int) -> dict[str, int]:
        """Tells how many vacation days an employee has left."""
        return next({"days_left": days} for number, _, days in PEOPLE.values() if number == employee_id)

    def list_employees(department: Literal["Sales", "Finance"] | None = None) -> list[str]:
        """Lists the names of employees.

        Args:
            department: only those of this department.
        """
        return [name for name, (_, own, _) in PEOPLE.items() if department in (None, own)]

    return [find_employee, vacation_balance, list_employees]


DEGREES = {"Paris": 14.5, "London": 11.0, "Oslo": -2.0, "Berlin": 8.0}
KILOMETERS = {
    frozenset({"Paris", "London"}): 344,
    frozenset({"Berlin", "Oslo"}): 838,
    frozenset({"Paris", "Oslo"}): 1343,
}


def travel() -> list[Callable[..., Any]]:
    def get_weather(city: str, units: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, Any]:
        """Gets the current temperature in a city."""
        degrees = DEGREES[city]
        return {"city": city, "temperature": degrees if units == "celsius" else degrees * 1.8 + 32, "units": units}

    def distance(origin: str, destination: str) -> dict[str, Any]:
        """Tells the distance between two cities in kilometers."""
        return {"kilometers": KILOMETERS[frozenset({origin, destination})]}

    return [get_weather, distance]


def finance() -> list[Callable[..., Any]]:
    def simple_interest(principal: float, rate_percent: float, years: float) -> dict[str, float]:
        """Calculates the simple interest on a principal.

        Args:
            principal: the amount lent.
            rate_percent: interest rate per year, in percent.
            years: for how many years.
        """
        return {"interest": principal * rate_percent * years / 100}

    def tip(bill: float, percent: float) -> dict[str, float]:
        """Calculates the tip on a bill."""
        return {"tip": round(bill * percent / 100, 2)}

    def body_mass_index(weight_kg: float, height_cm: float) -> dict[str, float]:
        """Calculates the body mass index from weight and height."""
        return {"bmi": round(weight_kg / (height_cm / 100) ** 2, 1)}

    def average(numbers: list[float]) -> float:
        """Calculates the average of numbers."""
        return sum(numbers) / len(numbers)

    return [simple_interest, tip, body_mass_index, average]


TASKS = [
    {"id": 1, "title": "Write report", "status": "open", "priority": "high"},
    {"id": 2, "title": "Fix printer", "status": "done", "priority": "low"},
    {"id": 3, "title": "Call Globex", "status": "open", "priority": "low"},
]


def tasks() -> list[Callable[..., Any]]:
    def list_tasks(
        status: Literal["open", "done"] | None = None, priority: Literal["low", "normal", "high"] | None = None
    ) -> dict[str, Any]:
        """Lists tasks, by status and priority."""
        found = [task for task in TASKS if status in (None, task["status"]) and priority in (None, task["priority"])]
        return {"tasks": found}

    def create_task(
        title: str, priority: Literal["low", "normal", "high"] = "normal", tags: list[str] | None = None
    ) -> dict[str, Any]:
        """Creates a task."""
        return {"id": 4, "title": title, "priority": priority, "tags": tags or []}

    def delete_task(task_id: int) -> dict[str, Any]:
        """Deletes a task."""
        return {"deleted": task_id}

    return [list_tasks, create_task, delete_task]


PLAIN = {
    "exercise": exercise,
    "kiosk": kiosk,
    "depot": depot,
    "reckoner": reckoner,
    "converters": converters,
    "texts": texts,
    "rooms": rooms,
    "orders": orders,
    "staff": staff,
    "travel": travel,
    "finance": finance,
    "tasks": tasks,
}


def tools_of(names: str) -> list[Tool]:
    """The tools of the boxes that `names` joins with "+"; "calculator" and "clock" are the built-in ones."""
    built_in = {"calculator": calculator, "clock": current_time}
    found: list[Tool] = []
    for name in names.split("+"):
        found += [built_in[name]] if name in built_in else [tool(each) for each in PLAIN[name]()]
    return found
