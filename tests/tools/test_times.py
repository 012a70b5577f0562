"""A time is the text that the model wrote, and no number that Pydantic counts from 1970: neither 2024 nor 20240131."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from treadle import Agent, tool
from treadle.testing import ScriptedModel


class Booking(BaseModel):
    at: datetime
    days: list[date] = []


@dataclass
class Shift:
    begin: time


NUMBERS = (2024, "2024", 20240131, "20240131", 1706693400.5, "1706693400.", -1)


def called(parameter: Any, value: Any) -> tuple[list[Any], str]:
    got: list[Any] = []

    def book(value: Any) -> str:
        got.append(value)
        return "booked"

    book.__annotations__["value"] = parameter
    model = ScriptedModel([[("book", {"value": value})], "done"])
    result = Agent(model, tools=[tool(book)]).run_sync("go")
    (told,) = [message.text for message in result.messages if message.role == "tool"]
    return got, told


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("kind", "wrap", "right"), [
    (datetime, lambda it: it, "2024-01-31T09:30:00"),
    (date, lambda it: it, "2024-01-31"),
    (time, lambda it: it, "09:30:00"),
    (timedelta, lambda it: it, "PT30M"),
    (datetime | None, lambda it: it, "2024-01-31T09:30:00"),
    (Annotated[datetime, Field(description="when")], lambda it: it, "2024-01-31T09:30:00"),
    (list[date], lambda it: [it], "2024-01-31"),
    (dict[str, date], lambda it: {"a": it}, "2024-01-31"),
    (Booking, lambda it: {"at": it}, "2024-01-31T09:30:00"),
    (Booking, lambda it: {"at": "2024-01-31", "days": ["2024-01-31", it]}, "2024-01-31"),
    (Shift, lambda it: {"begin": it}, "09:30:00"),
])  # fmt: skip
def test_a_number_is_no_time(kind: Any, wrap: Any, right: str, number: Any) -> None:
    got, told = called(kind, wrap(number))
    assert got == []
    assert f"should be written as text such as {right}, not as a number" in told


@pytest.mark.parametrize(("kind", "given", "taken"), [
    (datetime, "2024-01-31T09:30:00Z", datetime(2024, 1, 31, 9, 30, tzinfo=UTC)),
    (datetime, "2024-01-31", datetime(2024, 1, 31)),
    (date, "2024-01-31", date(2024, 1, 31)),
    (time, "09:30", time(9, 30)),
    (timedelta, "PT30M", timedelta(minutes=30)),
    (timedelta, "00:30:00", timedelta(minutes=30)),
    (int | datetime, 2024, 2024),
    (str | datetime, "2024", "2024"),
    (Annotated[datetime, WithJsonSchema({"type": "integer"})], 1706693400, datetime(2024, 1, 31, 9, 30, tzinfo=UTC)),
    (Annotated[datetime, Field(json_schema_extra={"type": "integer"})], 0, datetime(1970, 1, 1, tzinfo=UTC)),
    (Annotated[datetime, BeforeValidator(lambda it: it / 1000)], 1000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
])  # fmt: skip
def test_what_the_model_is_told_to_write_is_taken(kind: Any, given: Any, taken: Any) -> None:
    assert called(kind, given) == ([taken], "booked")


class Renamed(BaseModel):
    day: date

    @model_validator(mode="before")
    @classmethod
    def in_small_letters(cls, values: Any) -> Any:
        return {name.lower(): value for name, value in values.items()}


@pytest.mark.parametrize(("kind", "given"), [
    (Renamed, {"day": 0}),
    (Annotated[list[date], BeforeValidator(sorted)], [0]),
])  # fmt: skip
def test_a_number_is_no_time_within_what_a_function_of_ones_own_is_given_first(kind: Any, given: Any) -> None:
    taken, told = called(kind, given)
    assert taken == []
    assert "should be written as text such as 2024-01-31, not as a number" in told


def test_a_number_in_the_answer_is_no_time() -> None:
    model = ScriptedModel(['{"at": 2024}', '{"at": "2024-01-31T09:30:00Z", "days": ["2024-02-01"]}'])
    result = Agent(model, output=Booking, output_mode="prompted").run_sync("go")
    assert result.output == Booking(at=datetime(2024, 1, 31, 9, 30, tzinfo=UTC), days=[date(2024, 2, 1)])
    assert (
        "at: should be written as text such as 2024-01-31T09:30:00, not as a number"
        in model.requests[1].messages[-1].text
    )
