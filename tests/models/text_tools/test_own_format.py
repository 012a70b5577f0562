"""What the model is told can be seen, a format can be one's own, and a name says that tools are given in text."""

import asyncio

import pytest

from treadle import Agent, Misuse, tool
from treadle.kernel.messages import UserMessage
from treadle.models import TextTools, model_from_name
from treadle.models.names import UnknownModel
from treadle.models.port import ModelRequest
from treadle.models.text_tools import Call, Fault, Offer, Piece, Prose, TextFormat, Thought
from treadle.testing import ScriptedModel


@tool(effect="read")
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: sunny"


class Lines(TextFormat):
    """A call is a line: /tool {"argument": "value"}"""

    stop = ("\nResult of",)

    def how_to(self, offer: Offer, example: str) -> str:
        return f"To call a tool, write a line like this:\n\n{example}"

    def call(self, name: str, arguments: str) -> str:
        return "/" + name + " " + arguments.replace("\n", " ")

    def read(self, text: str, offer: Offer) -> list[Piece]:
        pieces: list[Piece] = []
        for line in text.splitlines(keepends=True):
            name, _, arguments = line.strip().removeprefix("/").partition(" ")
            if not line.startswith("/"):
                pieces.append(Thought(line) if line.startswith("#") else Prose(line))
            elif name in offer.tools and arguments:
                pieces.append(Call(name, arguments))
            else:
                pieces.append(Fault(line.strip(), "after the slash stand a tool and its arguments", name))
        return pieces


def test_a_format_of_ones_own_carries_a_whole_run():
    model = ScriptedModel(['# so\nI look.\n/weather {"city": "Rome"}', "/weather", "It is sunny."], chunk=3)
    result = Agent(TextTools(model, Lines()), tools=[weather]).run_sync("Rome?")
    assert result.text == "It is sunny."
    assert [call.arguments for call in result.tool_calls_made if not call.is_error] == [{"city": "Rome"}]
    first, second, third = model.requests
    assert 'To call a tool, write a line like this:\n\n/weather {"city": "..."}' in first.messages[0].text
    assert first.settings.stop == ("\nResult of",)
    assert [message.text for message in second.messages[-2:]] == [
        'I look.\n/weather {"city": "Rome"}',
        "Result of weather:\nRome: sunny",
    ]
    assert "after the slash stand a tool" in third.messages[-1].text
    assert "Right is, for example:\n\n/weather" in third.messages[-1].text


def test_a_call_in_another_form_is_not_the_answer_in_a_format_of_ones_own_either():
    model = ScriptedModel(['{"name": "weather", "arguments": {"city": "Rome"}}', "sunny"])
    result = Agent(TextTools(model, Lines()), tools=[weather]).run_sync("Rome?")
    assert (result.text, result.tool_calls_made[0].name) == ("sunny", "weather")


def test_a_format_that_gives_something_else_is_told_so():
    class Wrong(Lines):
        def read(self, text, offer):
            return ["text"]

    async def all_of(model):
        return [event async for event in model.stream(ModelRequest([UserMessage("?")], (weather.spec,)))]

    with pytest.raises(Misuse, match=r"Wrong.read gives Prose, Call, Thought and Fault; it gave 'text'"):
        asyncio.run(all_of(TextTools(ScriptedModel(["x"]), Wrong())))
    with pytest.raises(Misuse, match="and takes a TextFormat of your own"):
        TextTools(ScriptedModel(["x"]), Lines)
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (TextFormat,), {"call": Lines.call})()


@pytest.mark.parametrize("format", ["json", "react", "tags", Lines()])
def test_the_instructions_are_what_the_model_is_sent(format):
    model = ScriptedModel(["Final Answer: hello"])
    behind = TextTools(model, format)
    Agent(behind, instructions="Be brief.", tools=[weather]).run_sync("Hi")
    told = behind.instructions([weather])
    assert model.requests[0].messages[0].text == f"Be brief.\n\n{told}"
    assert told == behind.instructions([weather.spec])
    assert behind.instructions([weather], "required").endswith("You must call a tool in every reply.")
    assert behind.instructions([]) == ""


NAMES = {
    "text:ollama:llama3.2": ("json", "text:json:ollama:llama3.2", "ollama:llama3.2"),
    "text:tags:ollama:qwen3:8b": ("tags", "text:tags:ollama:qwen3:8b", "ollama:qwen3:8b"),
    "text:react:local:m@http://127.0.0.1:1/v1": (
        "react",
        "text:react:local:m@http://127.0.0.1:1/v1",
        "local:m",
    ),
    "text:offline": ("json", "text:json:offline", "offline"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_that_tools_are_given_in_text(name):
    made = model_from_name(name)
    assert isinstance(made, TextTools)
    format, own, inner = NAMES[name]
    assert (made.format, made.name, made.model.name.partition("@")[0]) == (format, own, inner)
    again = model_from_name(made.name)
    assert (again.format, again.name) == (format, own)
    assert Agent(name).model.name == own


@pytest.mark.parametrize("name", ["text:", "text:json:", "text:text:ollama:x", "text:tags:text:ollama:x"])
def test_a_name_without_a_model_says_what_to_write(name):
    with pytest.raises(UnknownModel, match="write text:PROVIDER:MODEL, or text:FORMAT:PROVIDER:MODEL"):
        model_from_name(name)


def test_a_name_of_an_unknown_provider_behind_text_says_what_there_is():
    with pytest.raises(UnknownModel, match="there is no provider 'olama'; did you mean 'ollama'"):
        Agent("text:olama:llama3")


def test_a_model_can_be_given_another_name():
    assert TextTools(ScriptedModel([]), name="mine").name == "mine"
