"""What people ask of a tool that they have just written: they call it by its name."""

from typing import Any

import pytest

from treadle import Agent, Conversation, RunResult, tool
from treadle.models.offline.plan.called import in_words

from .asked.judge import DECLINED


@tool(effect="read")
def refresh() -> str:
    """Refreshes the cache."""
    return "all fresh"


@tool(effect="read")
def ping() -> str:
    """Pings the server."""
    return "pong"


@tool(effect="read")
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"{city} is sunny"


@tool
def send_mail(to: str, text: str) -> str:
    """Sends a mail to somebody."""
    return f"sent to {to}"


def asked(question: str) -> RunResult:
    return Agent("offline", tools=[refresh, ping, get_weather, send_mail]).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize("question", ["call refresh", "Use the refresh tool.", "call refresh()", "Please run refresh"])
def test_a_tool_that_is_called_by_name_is_called_and_told(question: str) -> None:
    result = asked(question)
    assert calls(result) == [("refresh", {})]
    assert "all fresh" in result.text
    assert not DECLINED.search(result.text)


@pytest.mark.parametrize(
    "question",
    [
        "Call get_weather for Bonn",
        "get_weather for Bonn",
        "run get_weather(city='Bonn')",
        "Please use the tool get_weather with city Bonn.",
    ],
)
def test_it_is_called_with_what_is_said_and_no_other_tool_is(question: str) -> None:
    result = asked(question)
    assert calls(result) == [("get_weather", {"city": "Bonn"})]
    assert "Bonn is sunny" in result.text


def test_several_are_called_by_name() -> None:
    assert calls(asked("Call get_weather for Bonn and then call ping")) == [
        ("get_weather", {"city": "Bonn"}),
        ("ping", {}),
    ]


def test_a_name_in_what_somebody_is_to_be_told_stays_as_it_is() -> None:
    said = "and call get_weather for Bonn"
    result = asked(f'Call send_mail to "Ann" with text "{said}"')
    assert calls(result) == [("send_mail", {"to": "Ann", "text": said})]


@pytest.mark.parametrize(
    "question", ["Do not call send_mail to Ann with text hello", "Why did you call send_mail?", "What is send_mail?"]
)
def test_a_name_that_is_only_spoken_of_changes_nothing(question: str) -> None:
    assert "send_mail" not in [name for name, _ in calls(asked(question))]
    assert in_words(question, ["send_mail"]) == question


@pytest.mark.parametrize("question", ["stock and price of nuts", "Stock of nuts", "count the boxes"])
def test_a_name_that_is_a_word_of_the_question_is_left_alone(question: str) -> None:
    assert in_words(question, ["stock", "count"]) == question


def test_what_is_said_after_a_written_call_is_read_with_its_words() -> None:
    said = Conversation()
    agent = Agent("offline", tools=[refresh, get_weather])
    assert "Bonn is sunny" in agent.run_sync('get_weather(city="Bonn")', conversation=said).text
    assert "Riga is sunny" in agent.run_sync("and Riga?", conversation=said).text
