"""What a model can do is said once, and whatever stands around a model passes it on."""

import pytest

from treadle import Agent, Misuse, StepSettings, tool
from treadle.models import AnthropicModel, FallbackModel, LangChainModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.offline import OfflineModel
from treadle.models.profile import ModelProfile, profile_of
from treadle.models.text_tools import TextTools
from treadle.testing import ScriptedModel

KEY = "test-key-0123"


class Sized(ScriptedModel):
    def __init__(self, profile):
        super().__init__(["hello"])
        self.profile = profile


def chat(url="https://api.openai.com/v1", name="gpt-5"):
    return OpenAIChatModel(name, base_url=url, api_key=KEY)


@tool(effect="read")
def look(place: str) -> str:
    """Looks."""
    return place


def test_a_model_that_says_nothing_of_itself_is_unknown():
    assert profile_of(ScriptedModel([])) == ModelProfile()


def test_a_model_of_ones_own_may_say_single_things():
    model = ScriptedModel([])
    model.context_window = 4_000
    model.output_mode = lambda tools: "tool" if tools else "native"
    assert profile_of(model) == ModelProfile(context_window=4_000, output="native", output_beside_tools="tool")


def test_what_a_known_model_can_do():
    openai, claude = (
        profile_of(OpenAIResponsesModel("gpt-5", api_key=KEY)),
        AnthropicModel("claude-sonnet-4-5", api_key=KEY),
    )
    assert (openai.context_window, openai.output, openai.output_beside_tools) == (400_000, "native", "native")
    assert (openai.tools, openai.parallel_calls, openai.prefix_cache) == (True, True, True)
    assert profile_of(claude).prefix_cache is True
    assert profile_of(AnthropicModel("claude-sonnet-4-5", api_key=KEY, cache=None)).prefix_cache is False
    assert profile_of(OpenAIResponsesModel("gpt-4o", api_key=KEY)).thinking is False
    elsewhere = profile_of(AnthropicModel("m", api_key=KEY, base_url="http://127.0.0.1:1"))
    assert (elsewhere.context_window, elsewhere.output) == (None, "tool")


def test_text_tools_pass_on_what_the_inner_model_can_do():
    inner = chat()
    around = profile_of(TextTools(inner))
    assert around.context_window == profile_of(inner).context_window == 400_000
    assert (around.output, around.output_beside_tools, around.tools) == ("native", "prompted", True)
    assert around.prefix_cache is True
    assert profile_of(TextTools(ScriptedModel([]))).output == "prompted"
    # A final tool is a thing of words there.
    assert profile_of(TextTools(chat("https://api.deepseek.com/v1", "m"))).output == "prompted"


def test_a_chain_says_what_can_be_counted_on():
    one = ModelProfile(context_window=10, output="native", tools=True, parallel_calls=True, thinking=True)
    other = ModelProfile(context_window=20, output="tool", output_beside_tools="tool", tools=False, thinking=True)
    both = profile_of(FallbackModel([Sized(one), Sized(other)]))
    assert both == ModelProfile(
        context_window=20,
        output="tool",
        output_beside_tools="prompted",
        tools=False,
        parallel_calls=None,
        thinking=True,
    )
    assert profile_of(TextTools(FallbackModel([Sized(one), Sized(other)]))).context_window == 20


def test_a_chat_model_of_langchain_passes_its_window_through_wrappers():
    fake = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    chat_model = fake.GenericFakeChatModel(messages=iter(["hello"]), profile={"max_input_tokens": 1_000})
    model = LangChainModel(chat_model)
    assert profile_of(model) == ModelProfile(context_window=1_000, tools=False, thinking=False)
    around = profile_of(FallbackModel([TextTools(model)]))
    assert (around.context_window, around.tools) == (1_000, True)


def test_compaction_is_on_behind_text_tools():
    """Silently off before: the wrapper lost the window."""
    from treadle.drivers.compact import DEFAULT

    assert Agent(TextTools(chat()))._config.context == Agent(chat())._config.context == DEFAULT
    assert Agent(FallbackModel([TextTools(chat())]))._config.context == DEFAULT


def test_tools_for_a_model_that_takes_none_are_refused_at_once():
    with pytest.raises(Misuse, match=r"takes no tools.*TextTools\(model\)"):
        Agent(Sized(ModelProfile(tools=False)), tools=[look])
    with pytest.raises(Misuse, match=r"takes no tools.*TextTools\(model\)"):
        Agent(Sized(ModelProfile()), tools=[look]).with_model(Sized(ModelProfile(tools=False)))
    Agent(Sized(ModelProfile(tools=False)))
    Agent(TextTools(Sized(ModelProfile(tools=False))), tools=[look])


def test_the_final_tool_of_an_answer_is_refused_for_a_model_that_takes_no_tools():
    with pytest.raises(Misuse, match=r"takes no tools.*'final_answer'.*TextTools\(model\)"):
        Agent(Sized(ModelProfile(tools=False)), output=int, output_mode="tool")
    Agent(Sized(ModelProfile(tools=False)), output=int)


@pytest.mark.parametrize(
    ("given", "chosen", "named"),
    [
        ({"tools": [look]}, {}, "look"),
        ({"tools": [look]}, {"tool_choice": "none"}, "look"),
        ({"output": int, "output_mode": "tool"}, {"tools": []}, "final_answer"),
    ],
)
def test_a_step_that_offers_tools_to_a_model_that_takes_none_is_refused(given, chosen, named):
    """The provider refused the request, and the run ended by that."""
    plain = ScriptedModel(["7"])
    plain.profile = ModelProfile(tools=False)
    agent = Agent(ScriptedModel([]), prepare_step=lambda context: StepSettings(model=plain, **chosen), **given)
    with pytest.raises(Misuse, match=rf"takes no tools, and there are 1, '{named}' first"):
        agent.run_sync("How many?")
    assert plain.requests == []


def test_a_step_without_tools_may_ask_a_model_that_takes_none():
    plain = ScriptedModel(["7"])
    plain.profile = ModelProfile(tools=False)
    agent = Agent(ScriptedModel([]), tools=[look], prepare_step=lambda context: StepSettings(model=plain, tools=[]))
    assert agent.run_sync("How many?").text == "7"


@pytest.mark.parametrize(
    "wrong",
    [
        {"context_window": 0},
        {"context_window": "8k"},
        {"context_window": float("nan")},
        {"context_window": True},
        {"output": "json"},
        {"output_beside_tools": None},
        {"tools": "yes"},
        {"thinking": 5},
    ],
)
def test_a_profile_that_cannot_be_is_refused_where_it_is_made(wrong):
    with pytest.raises(Misuse, match=next(iter(wrong))):
        ModelProfile(**wrong)


def test_a_profile_of_another_kind_is_told():
    with pytest.raises(Misuse, match="must be a ModelProfile"):
        Agent(Sized({"context_window": 5}))


def test_the_planner_says_what_it_is():
    assert profile_of(OfflineModel()).thinking is False
    assert profile_of(OfflineModel()).output_mode(tools=True) == "native"
