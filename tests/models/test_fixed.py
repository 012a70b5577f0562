"""What a request has besides its messages: as the model says, else as long as what is told of tools and schema."""

import pytest
from vocabulary import most

from treadle import Agent, Limits, tool
from treadle.models import AnthropicModel, FallbackModel, OpenAIChatModel, TextTools
from treadle.models.fixed import described, fixed_tokens, members
from treadle.testing import ScriptedModel

SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer", "description": "in cents"}}}


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def asked(model, tools=(pay.spec,), schema=None):
    return fixed_tokens(model, tools, schema)


class Saying(ScriptedModel):
    def __init__(self, said):
        super().__init__(["done"])
        self.said = said

    def fixed_tokens(self, tools, output_schema):
        return self.said


@pytest.fixture
def groq():
    return OpenAIChatModel("llama-4", api_key="k", base_url="https://api.groq.com/openai/v1")


@pytest.fixture
def openai():
    return OpenAIChatModel("gpt-5", api_key="k", base_url="https://api.openai.com/v1")


def test_a_model_that_says_nothing_is_sent_what_is_told_of_its_tools_and_schema():
    model = ScriptedModel(["done"])
    assert asked(model, ()) == 0
    assert asked(model) == described((pay.spec,), None) >= most("pay Pays. amount integer")
    assert asked(model, (), SCHEMA) >= most("amount integer in cents")
    assert asked(model, (pay.spec,), SCHEMA) == asked(model) + asked(model, (), SCHEMA)


@pytest.mark.parametrize("said", [True, -1, 1.5, None, 1 << 80])
def test_what_can_be_no_number_of_tokens_is_not_believed(said):
    assert asked(Saying(said)) == described((pay.spec,), None)


def test_what_a_model_says_counts_in_each_request():
    result = Agent(Saying(700), tools=[pay], limits=Limits(tokens=710)).run_sync("go")
    assert result.stop.reason == "max_tokens"
    assert result.usage.total_tokens == 0


def test_what_hosts_add_is_known(groq, openai):
    claude = AnthropicModel("claude-sonnet-4-5", api_key="k", base_url="https://api.anthropic.com")
    for model in (groq, claude):
        assert asked(model) > described((pay.spec,), None) + 600
        assert asked(model, (), SCHEMA) > described((), SCHEMA) + 200
    assert asked(openai) < asked(groq)


def test_of_several_models_the_one_that_is_sent_the_most_counts(groq, openai):
    both = FallbackModel([openai, groq])
    assert asked(both) == asked(groq)
    assert members(both) == (openai, groq)
    assert members(TextTools(both)) == (openai, groq)
    assert members(openai) == (openai,)


@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_tools_in_words_are_a_manual(groq, format):
    model = TextTools(groq, format)
    assert asked(model, ()) == asked(groq, ())
    assert asked(model) > asked(groq, ()) + 100
