"""What chat models of LangChain stream where it is not as it should be: broken off, twice, in odd pieces."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from treadle import Agent, Limits, Retries, tool
from treadle.kernel.events import ModelFailed
from treadle.models import ProtocolError, ToolCallCompleted
from treadle.models.langchain import LangChainModel

pytestmark = pytest.mark.anyio
SOON = Retries(attempts=2, base=0.001)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Says(BaseChatModel):
    """A chat model that streams chunks, those of a turn for each request; `kind` is whose integration it says it is."""

    turns: list[Any]
    kind: str = "says"
    at: int = 0

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        turn = self.turns[min(self.at, len(self.turns) - 1)]
        self.at += 1
        for piece in turn:
            if isinstance(piece, (int, float)):
                await asyncio.sleep(piece)
            else:
                yield ChatGenerationChunk(message=piece)


def said(text: str = "", *calls: tuple[Any, Any, Any, Any], **metadata: Any) -> AIMessageChunk:
    pieces = [{"index": i, "id": call, "name": name, "args": args} for i, call, name, args in calls]
    return AIMessageChunk(content=text, tool_call_chunks=pieces, response_metadata=metadata)


ENDS = said(finish_reason="stop")
CALLS = said(finish_reason="tool_calls")
DONE = [said("Done."), ENDS]
PAY_A, PAY_B = '{"to": "A"}', '{"to": "B"}'


@pytest.fixture
def paid() -> list[str]:
    return []


@pytest.fixture
def pay(paid: list[str]) -> Any:
    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


async def run(turns: list[Any], *tools: Any, kind: str = "says", on_event: Any = None, **options: Any) -> Any:
    agent = Agent(LangChainModel(Says(turns=turns, kind=kind)), tools=tools, retries=SOON, **options)
    return await agent.run("go", on_event=on_event)


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic-chat", "chat-ollama"])
async def test_a_stream_that_ends_without_a_word_of_why_is_no_answer_and_runs_nothing(kind, paid, pay):
    metadata = {"model_provider": "openai"}
    result = await run([[said("Half an", **metadata)]], kind=kind)
    assert (result.stop.reason, type(result.error)) == ("model_error", ProtocolError)
    result = await run([[said("", (0, "a", "pay", PAY_A), **metadata)], DONE], pay, kind=kind)
    assert (result.text, paid) == ("Done.", [])
    assert [event.error.kind for event in result.events if isinstance(event, ModelFailed)] == ["protocol_error"]


async def test_who_has_said_once_why_a_reply_ended_is_expected_to(paid, pay):
    model = LangChainModel(Says(turns=[[said("Half an")], DONE, [said("Half an")], DONE]))
    agent = Agent(model, retries=SOON)
    assert (await agent.run("go")).text == "Half an"  # nobody knows better yet
    assert (await agent.run("go")).text == "Done."
    result = await agent.run("go")
    assert (result.text, len([event for event in result.events if isinstance(event, ModelFailed)])) == ("Done.", 1)


@pytest.mark.parametrize("status", ["cancelled", "queued", "in_progress", "a new word"])
async def test_a_response_that_was_not_completed_is_not_used(status, paid, pay):
    half = [said("", (0, "a", "pay", PAY_A)), said(object="response", status=status)]
    result = await run([half], pay)
    assert (result.stop.reason, paid) == ("model_error", [])
    whole = [said("", (0, "a", "pay", PAY_A)), said(object="response", status="completed")]
    assert (await run([whole, DONE], pay)).text == "Done."
    assert paid == ["A"]


@pytest.mark.parametrize(
    ("pieces", "made"),
    [
        ([said("", (0, "a", "pay", PAY_A)), said("", (1, "a", "pay", PAY_A))], ["A"]),
        ([said("", (None, "a", "pay", PAY_A)), said("", (None, "a", "pay", PAY_A))], ["A"]),
        ([said("", (0, "a", "pay", PAY_A)), said("", (0, "a", "pay", PAY_A))], ["A"]),
        ([said("", (0, "a", "pay", PAY_A)), said("", (1, "a", "pay", PAY_B))], ["A", "B"]),
        ([said("", (None, None, "pay", PAY_A)), said("", (None, None, "pay", PAY_B))], ["A", "B"]),
        ([said("", (None, None, "pay", PAY_A)), said("", (None, None, "pay", PAY_A))], ["A", "A"]),
        ([said("", (0, "a", "pa", "")), said("", (0, None, "y", PAY_A))], ["A"]),
        ([said("", (0, "a", "pay", "")), said("", (0, None, "pay", PAY_A))], ["A"]),
        ([said("", (0, "a", None, '{"to"')), said("", (0, None, "pay", ': "A"}'))], ["A"]),
        ([said("", (0, "a", "pay", '{"to": "A')), said("", (0, None, None, '"}'))], ["A"]),
        (
            [said("", (0, "a", "pay", '{"to": ')), said("", (0, None, None, '"A"}')), said("", (0, None, None, PAY_A))],
            ["A"],
        ),
        ([said("", (None, "a", "pay", PAY_A)), said("", (None, "a", None, '{"to":"A"}'))], ["A"]),
        # An id of its own for every piece, and calls that come by turns under one number.
        ([said("", (0, "a", "pay", '{"to": ')), said("", (0, "b", None, '"A"}'))], ["A"]),
        ([said("", (None, "a", "pay", '{"to": ')), said("", (None, "b", None, '"A"}'))], ["A"]),
        (
            [
                *(said("", (0, call_id, "pay", '{"to": ')) for call_id in "ab"),
                *(said("", (0, call_id, None, f'"{call_id.upper()}"}}')) for call_id in "ab"),
            ],
            ["A", "B"],
        ),
        ([said("", (0, "a", "pay", '{"to": "A'))], []),
        ([said("", (0, "a", None, PAY_A))], []),
    ],
)
async def test_each_call_is_made_once_however_its_pieces_came(pieces, made, paid, pay):
    told: list[Any] = []
    result = await run([[*pieces, CALLS], DONE], pay, on_event=told.append)
    assert (result.text, sorted(paid)) == ("Done.", made)
    ids = [call.id for call in result.tool_calls_made]
    assert len(set(ids)) == len(ids)
    assert [one.id for one in told if isinstance(one, ToolCallCompleted)] == ids


async def test_a_stream_without_any_chunk_is_asked_for_again():
    result = await run([[], DONE])
    assert result.text == "Done."
    assert "before anything of it came" in str(
        next(event.error.message for event in result.events if isinstance(event, ModelFailed))
    )


async def test_a_stream_that_trickles_is_cut_at_the_deadline():
    async with asyncio.timeout(10):
        result = await run([[piece for _ in range(50) for piece in (said("."), 0.2)]], limits=Limits(seconds=0.5))
    assert result.stop.reason == "deadline"
    assert set(result.text) <= {"."}
    assert result.usage.output_tokens > 0


def counted(asked: int, replied: int) -> AIMessageChunk:
    usage: Any = {"input_tokens": asked, "output_tokens": replied, "total_tokens": asked + replied}
    return AIMessageChunk(content="", usage_metadata=usage)


async def test_what_was_counted_of_a_reply_that_broke_off_is_paid_for():
    result = await run([[counted(9_000, 0), said("Half an")], DONE], kind="anthropic-chat")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert failed.usage.input_tokens == 9_000
    assert result.usage.input_tokens >= 9_000


async def test_what_was_counted_of_a_reply_that_came_too_late_is_paid_for():
    result = await run([[counted(9_000, 40), 30.0]], limits=Limits(seconds=2, tokens=1_000_000))
    assert result.stop.reason == "deadline"
    assert (result.usage.input_tokens, result.usage.output_tokens) == (9_000, 40)


@pytest.mark.parametrize("at", [None, 0, 1])
async def test_a_call_that_broke_off_before_it_had_a_name_is_paid_for(pay, at):
    pieces = [said("", (0, "a", None, PAY_A * 40))]
    if at is not None:
        pieces.insert(at, counted(9_000, 0))
    result = await run([pieces, DONE], pay, kind="anthropic-chat")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert failed.usage.estimated
    assert failed.usage.input_tokens > 0 < 40 < failed.usage.output_tokens
    assert at is None or failed.usage.input_tokens == 9_000


@pytest.mark.parametrize("first", ["name", "nothing"])
async def test_a_reply_that_broke_off_as_it_had_begun_is_paid_for(pay, first):
    """Its provider had read the request; where no piece was heard yet, nothing was told."""
    piece = said("", (0, "a", "pay", "")) if first == "name" else said("")
    result = await run([[piece], DONE], pay, kind="anthropic-chat")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert failed.usage.estimated
    assert failed.usage.input_tokens > 0
