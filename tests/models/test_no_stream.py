"""Models whose `stream` gives no events, or that are no models yet: what is wrong is said in words."""

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, Limits, Misuse, Text
from treadle.models import AssistantMessage, FallbackModel, ModelReply, TextTools

REPLY = ModelReply(AssistantMessage((Text("hi"),)))


class Whole:
    name = "whole"

    async def stream(self, request: Any) -> Any:
        return REPLY


class Listed:
    name = "listed"

    def stream(self, request: Any) -> Any:
        return [REPLY]


class Nothing:
    name = "nothing"

    def stream(self, request: Any) -> Any:
        return None


class Fine:
    name = "fine"

    async def stream(self, request: Any) -> Any:
        yield REPLY


AROUND: tuple[Callable[[Any], Any], ...] = (lambda model: model, TextTools, lambda model: FallbackModel([model]))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", [Whole, Listed, Nothing])
def test_a_stream_without_events_is_an_error_that_says_what_is_right(kind: Any, around: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = Agent(around(kind())).run_sync("go")
    assert result.stop.reason == "model_error"
    assert "`async def` with a `yield` for each event" in str(result.error)
    assert result.steps == ()


@pytest.mark.parametrize("make", [Agent, TextTools, lambda model: FallbackModel([Fine(), model])])
@pytest.mark.parametrize("given", [Fine, type("Unnamed", (Fine,), {"name": None})()])
def test_a_class_and_what_has_no_name_are_no_models(make: Any, given: Any) -> None:
    with pytest.raises(Misuse, match="takes a"):
        make(given)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("held_to", "of m returns ModelSettings"),
        ("terms", "returns treadle.models.terms.Terms"),
    ],
)
def test_what_a_method_forgets_to_return_is_named(method: str, words: str) -> None:
    own = {"name": "m", "cost": lambda self, usage: Decimal("0.01"), method: lambda self, *given: None}
    with pytest.raises(Misuse, match=words):
        Agent(type("M", (Fine,), own)(), limits=Limits(usd=1)).run_sync("go")
