"""The same with pydantic-ai: what waits is kept by the service, here in memory."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from played import calls_then
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

model = calls_then(("refund", {"customer": "Ada", "amount": 250}), "Done.")
waiting: dict[str, list[ModelMessage]] = {}

app = FastAPI()
clerk = Agent(model, output_type=[str, DeferredToolRequests])


@clerk.tool_plain(requires_approval=True)
def refund(customer: str, amount: int) -> str:
    """Pays money back to a customer."""
    return f"{amount} paid back to {customer}"


async def sse(
    run_id: str, question: str | None = None, decided: DeferredToolResults | None = None
) -> AsyncIterator[str]:
    history = waiting.pop(run_id, None)
    async with clerk.run_stream_events(question, message_history=history, deferred_tool_results=decided) as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                yield f"event: text\ndata: {json.dumps(event.part.content)}\n\n"
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                yield f"event: text\ndata: {json.dumps(event.delta.content_delta)}\n\n"
            elif isinstance(event, AgentRunResultEvent):
                output = event.result.output
                done = {"run_id": run_id, "text": output if isinstance(output, str) else "", "pending": []}
                if isinstance(output, DeferredToolRequests):
                    waiting[run_id] = event.result.all_messages()
                    done["pending"] = [
                        {"key": one.tool_call_id, "tool": one.tool_name, "arguments": one.args_as_dict()}
                        for one in output.approvals
                    ]
                yield f"event: result\ndata: {json.dumps(done)}\n\n"


@app.post("/ask")
async def ask(question: str) -> StreamingResponse:
    return StreamingResponse(sse(str(uuid4()), question), media_type="text/event-stream")


@app.post("/runs/{run_id}/decision")
async def decide(run_id: str, key: str, agreed: bool) -> StreamingResponse:
    decided = DeferredToolResults(approvals={key: agreed})
    return StreamingResponse(sse(run_id, decided=decided), media_type="text/event-stream")


# --- the program ends here; what follows plays a client


def last(stream: str) -> dict[str, object]:
    return json.loads(stream.strip().rpartition("data: ")[2])


if __name__ == "__main__":
    from starlette.testclient import TestClient

    with TestClient(app) as client:
        first = last(client.post("/ask", params={"question": "Ada wants her money back."}).text)
        (call,) = first["pending"]
        print(call["tool"], call["arguments"])
        decision = {"key": call["key"], "agreed": True}
        print(last(client.post(f"/runs/{first['run_id']}/decision", params=decision).text)["text"])
