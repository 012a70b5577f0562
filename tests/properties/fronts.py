"""Clients of each protocol that a server speaks, as far as what they have of a run can be compared with its journal."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from sequences import check_ag_ui, check_ai_sdk

from treadle.drivers.live import WITHDRAWN
from treadle.kernel.calls import CallRecord, plain
from treadle.kernel.events import Event, ModelReplied
from treadle.kernel.fold import fold
from treadle.kernel.messages import Text
from treadle.kernel.state import RunState
from treadle.kernel.stop import LIMIT_REASONS

CALLERS = ("ask", "done")
"""Tools without a function: what comes of their calls the client knows."""

END = {"done": "done", "limit": "limit", "failed": "failed", "cancelled": "cancelled"}


@dataclass
class Kept:
    """What a journal has of a run: each thing that was said, what the calls of its own tools came to, how it stands."""

    state: RunState
    texts: list[str]
    own_texts: list[str]
    results: dict[str, CallRecord]

    @classmethod
    def of(cls, events: Sequence[Event]) -> "Kept":
        """What these events say."""
        state, texts, own, results = RunState(), list[str](), list[str](), dict[str, CallRecord]()
        for event in events:
            state = fold(state, event)
            if isinstance(event, ModelReplied) and event.message.text:
                texts.append(event.message.text)
                own.append(event.message.text)
            steps = [state.step] if state.step is not None else state.steps[-1:]
            for record in [one for step in steps for one in step.calls]:
                if record.result is not None and record.name not in CALLERS and record.id not in results:
                    results[record.id] = record
                    if record.final and record.result.text:
                        texts.append(record.result.text)
        return cls(state, texts, own, results)

    @property
    def how(self) -> str:
        """How it ended: done or waiting, by a limit, cancelled, or failed."""
        reason = "running" if self.state.stop is None else self.state.stop.reason
        if reason in LIMIT_REASONS or reason in ("length", "content_filter", "refusal"):
            return "limit"
        if reason in ("cancelled", "running"):
            return "cancelled"
        return "done" if reason in ("answered", "condition", "waiting", "external_tool") else "failed"

    def said_of(self, call: str) -> tuple[str, str]:
        """What a client is to be told of a call: whether it was refused, failed or done, and the words."""
        record = self.results[call]
        assert record.result is not None
        if not record.executed and record.made == 1 and '"This call was not approved' in record.result.text:
            return "refused", ""
        return ("failed" if record.result.is_error else "done"), _words(record.result.content)


def _words(content: Any) -> str:
    """What a call came to in words, of files and images what they are."""
    if isinstance(content, str):
        return content
    return "\n".join([one.text if isinstance(one, Text) else f"[{one.media_type}]" for one in content])


class Client:
    """A client that asks once, and decides on what waits.

    Attributes:
        typed: whether the agent has a typed answer, which may be all that is said.
        run: its run; `texts` what was said in it, `results` what came of each call, as `Kept.said_of` says it.
        how: how it ended, as `Kept.how` says it; "stopped" where something broke in the middle.
        waits: the names of the questions whether a call may run.
        tokens: that it was told of; None for none.
        broke_off: whether something that was said was withdrawn in a way that leaves it there.
    """

    def __init__(self, http: httpx2.AsyncClient, typed: bool) -> None:
        self.http, self.typed, self.run = http, typed, ""
        self.texts, self.results = list[str](), dict[str, tuple[str, str]]()
        self.how, self.waits = "", list[str]()
        self.tokens: int | None = None
        self.broke_off = False

    async def ask(self) -> None:
        """Asks."""
        raise NotImplementedError

    async def decide(self, yes: bool) -> None:
        """Says the same to all that waits."""
        raise NotImplementedError

    async def posted(self, path: str, body: Any) -> list[Any]:
        """What is streamed for a post."""
        answer = await self.http.post(path, json=body)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        self.run = answer.headers["x-treadle-run"]
        return lines_of(answer)

    def as_told(self, state: str, words: str) -> tuple[str, str]:
        """What came of a call, as the protocol says it."""
        return state, words

    def check(self, kept: Kept) -> None:
        """What it has is what its journal has."""
        if self.how == "stopped":
            assert kept.state.phase != "finished", "it was told to have stopped in the middle"
            return
        if not self.typed and not self.broke_off:
            # A text that calls stand in the middle of is told in parts.
            said, wanted = ["".join(one).replace("\n\n", "") for one in (self.texts, kept.texts)]
            assert said == wanted, (self.how, self.texts, kept.texts)
        results = {call: self.as_told(*kept.said_of(call)) for call in kept.results}
        other = {call: (self.results.get(call), results.get(call)) for call in self.results.keys() | results.keys()}
        assert self.results == results, {call: one for call, one in other.items() if one[0] != one[1]}
        assert self.tokens in (None, kept.state.usage.total_tokens)
        assert self.how == kept.how, (self.how, kept.state.stop)


def lines_of(answer: httpx2.Response) -> list[Any]:
    """The data of a stream."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


class Chat(Client):
    """Chat Completions, which tells nothing of calls."""

    async def ask(self) -> None:
        asked = {"model": "agent", "messages": [{"role": "user", "content": "go"}], "stream": True}
        chunks = await self.posted("/v1/chat/completions", asked | {"stream_options": {"include_usage": True}})
        deltas = [one["choices"][0]["delta"].get("content", "") for one in chunks if one.get("choices")]
        self.broke_off = WITHDRAWN in deltas
        if "error" in chunks[-1]:
            code = chunks[-1]["error"]["code"]
            self.how = "cancelled" if code == "cancelled" else "stopped" if code in ("paused", "internal") else "failed"
            return
        *_, last, used = chunks
        said, _, _ = "".join(deltas).partition(f"Run {self.run} waits for ")
        self.texts = [said.removesuffix("\n\n") if last["treadle"].get("pending") else said]
        self.how = "limit" if last["choices"][0]["finish_reason"] in ("length", "content_filter") else "done"
        self.tokens = used["usage"]["total_tokens"]

    async def decide(self, yes: bool) -> None:
        """It has no way to."""

    def check(self, kept: Kept) -> None:
        whole = "\n\n".join(kept.texts)
        super().check(replace(kept, texts=[whole] if self.how in ("done", "limit") else [], results={}))


class Responses(Client):
    """Responses; each is asked for again, whole and as a stream."""

    async def ask(self, **more: Any) -> None:
        events = await self.posted("/v1/responses", {"model": "agent", "input": "go", "stream": True, **more})
        self.waits = []
        if "error" in events[-1]:
            self.how = "stopped"
            return
        whole = events[-1]["response"]
        pieces: dict[str, str] = {}
        for one in events:
            if one["type"] == "response.output_text.delta":
                pieces[one["item_id"]] = pieces.get(one["item_id"], "") + one["delta"]
        for item in whole["output"]:
            assert item["type"] != "message" or not item["content"] or pieces[item["id"]] == item["content"][0]["text"]
        again = (await self.http.get(f"/v1/responses/{whole['id']}")).json()
        assert again == lines_of(await self.http.get(f"/v1/responses/{whole['id']}?stream=true"))[-1]["response"]
        if all(one.get("status") != "incomplete" for one in whole["output"]):
            # Of a stream nobody knows which response it went on from, and thoughts may have come apart otherwise.
            assert self._plain(again) == self._plain(whole)
        self._take(whole)

    @staticmethod
    def _plain(whole: Any) -> Any:
        items = [one for one in whole["output"] if one["type"] != "reasoning"]
        named = [{**one, "id": "" if one["type"] == "message" else one["id"]} for one in items]
        return {**whole, "previous_response_id": None, "output": named}

    def _take(self, whole: Any) -> None:
        self.id, self.how = whole["id"], {"completed": "done", "incomplete": "limit"}.get(*[whole["status"]] * 2)
        self.tokens = (self.tokens or 0) + whole["usage"]["total_tokens"]
        for one in whole["output"]:
            if one["type"] == "message" and one["content"] and not one["id"].endswith("_waiting"):
                self.texts.append(one["content"][0]["text"])
            elif one["type"] == "mcp_approval_request":
                self.waits.append(one["id"])
            elif one["type"] == "mcp_call" and one["status"] in ("completed", "failed"):
                call = one["id"].removeprefix(f"mcp_{self.run}_")
                words = one["output"] if one["error"] is None else one["error"]["content"]
                refused = words == "not approved"
                state = "refused" if refused else "done" if one["error"] is None else "failed"
                self.results[call] = (state, "" if refused else words)

    async def decide(self, yes: bool) -> None:
        said = [{"type": "mcp_approval_response", "approval_request_id": one, "approve": yes} for one in self.waits]
        await self.ask(input=said, previous_response_id=self.id)


class UseChat(Client):
    """The AI SDK, version 7; the chat is opened again."""

    async def ask(self) -> None:
        self.parts, self.marks = list[Any](), 0
        message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        await self._post({"messages": [message]})

    async def _post(self, body: Any) -> None:
        asked = {"id": "c", "trigger": "submit-message", **body}
        told = await self.posted("/ai-sdk/agent?sdk=7", asked)
        check_ai_sdk(told, [one["toolCallId"] for one in self.parts if "toolCallId" in one])
        for one in told:
            self._take(one)
        if self.how != "stopped":
            kept = (await self.http.get("/ai-sdk/agent/c/messages?sdk=7")).json()
            shown = [one for message in kept if message["role"] == "assistant" for one in message["parts"]]
            assert self._plain(shown) == self._plain(self.parts), (self._plain(shown), self._plain(self.parts))
        self.texts = [one["text"] for one in self.parts if one["type"] == "text"]
        calls = [one for one in self.parts if "toolCallId" in one and not one.get("dynamic")]
        self.results = {one["toolCallId"]: _outcome(one) for one in calls if one["state"].startswith("output-")}
        # Of a call whose run below waits it is said that it has come to something, so that a verdict is sent.
        waits = ("done", json.dumps({"waits": True}))
        self.results = {
            call: one for call, one in self.results.items() if self._names[call] not in CALLERS and one != waits
        }

    @staticmethod
    def _plain(parts: Sequence[Any]) -> Any:
        texts = [one["text"] for one in parts if one["type"] == "text"]
        # A call of an agent below goes on where the reply that asked for that agent is withdrawn.
        own = [one for one in parts if "toolCallId" in one and one["type"] != "dynamic-tool" and not one.get("dynamic")]
        calls = {one["toolCallId"]: one["state"] for one in own}
        return "".join(texts), {name: state for name, state in calls.items() if state.startswith("output-")}

    def _take(self, one: Any) -> None:
        match one["type"]:
            case "start":
                self.id, self._names, self.waits, self.how = one["messageId"], getattr(self, "_names", {}), [], ""
            case "start-step":
                self.marks = len(self.parts)
            case "reset-step":
                del self.parts[self.marks :]
            case "text-start":
                self.parts.append({"type": "text", "id": one["id"], "text": ""})
            case "text-delta":
                next(part for part in reversed(self.parts) if part.get("id") == one["id"])["text"] += one["delta"]
            case "tool-input-start" | "tool-input-available":
                self._names[one["toolCallId"]] = one["toolName"]
                if not any(part.get("toolCallId") == one["toolCallId"] for part in self.parts):
                    more = {"dynamic": one.get("dynamic", False), "type": f"tool-{one['toolName']}"}
                    self.parts.append({"toolCallId": one["toolCallId"], "state": "input", **more})
            case "tool-output-available" | "tool-output-error" | "tool-output-denied":
                part = next(part for part in self.parts if part.get("toolCallId") == one["toolCallId"])
                part.update({"state": one["type"].removeprefix("tool-"), "told": one})
            case "tool-approval-request":
                self.waits.append(one["approvalId"])
            case "abort":
                self.how = "cancelled"
            case "error":
                self.how = "failed"
            case "finish":
                reason = one["finishReason"]
                self.how = self.how or ("limit" if reason in ("length", "content-filter") else "done")

    async def decide(self, yes: bool) -> None:
        parts = [
            {"type": "tool-x", "toolCallId": "x", "state": "approval-responded", "input": {}}
            | {"approval": {"id": name, "approved": yes}}
            for name in self.waits
        ]
        await self._post({"messages": [{"id": self.id, "role": "assistant", "parts": parts}]})

    def as_told(self, state: str, words: str) -> tuple[str, str]:
        data = plain(words) if state == "done" and words[:1] in ("{", "[") else words
        return state, data if isinstance(data, str) else json.dumps(data)

    def check(self, kept: Kept) -> None:
        if self.how == "failed" and kept.state.phase != "finished":
            return
        if self.how == "failed" and kept.how == "limit":
            # It has one word for what ends a run before it is done.
            self.how = "limit"
        super().check(kept)


def _outcome(part: Any) -> tuple[str, str]:
    if part["state"] == "output-denied":
        return "refused", ""
    if part["state"] == "output-error":
        return "failed", part["told"]["errorText"]
    told = part["told"]["output"]
    if isinstance(told, list) and told and all(isinstance(one, dict) and "type" in one for one in told):
        told = "\n".join([one["text"] if one["type"] == "text" else f"[{one['mediaType']}]" for one in told])
    return "done", told if isinstance(told, str) else json.dumps(told)


class Agui(Client):
    """AG-UI; what a run says is asked for again under its id."""

    async def ask(self) -> None:
        self.messages, self.number = [{"id": "u", "role": "user", "content": "go"}], 0
        await self._post({"messages": [dict(one) for one in self.messages]})

    async def _post(self, body: Any) -> None:
        self.number += 1
        asked = {"threadId": "t", "runId": f"r{self.number}", "state": {}, "tools": [], "context": [], **body}
        asked["forwardedProps"] = {}
        events = await self.posted("/ag-ui/agent", asked)
        check_ag_ui(events)
        # It was cut off in the middle, and comes back with what it has by then.
        cut = len(events) * (len(events) % 5) // 4
        for one in events[:cut]:
            self._take(one)
        had = copy.deepcopy(self.messages)
        for one in events[cut:]:
            self._take(one)
        if events[-1]["type"] != "RUN_ERROR" or events[-1].get("code") != "internal":
            now, self.messages = self.messages, had
            events = await self.posted("/ag-ui/agent", {**asked, "messages": copy.deepcopy(had)})
            check_ag_ui(events)
            for one in events:
                self._take(one)
            again, live = self._plain(self.messages), self._plain(now)
            assert again == live, (again, live)
        self._end(events[-1])

    @staticmethod
    def _plain(messages: Sequence[Any]) -> Any:
        own = [one for one in messages if "subagentRunId" not in one]
        texts = [one["content"] for one in own if one["role"] == "assistant" and one.get("content")]
        calls = [call for one in messages for call in one.get("toolCalls", ())]
        assert len(calls) == len({call["id"] for call in calls}), calls
        # A text that calls stand in the middle of may come in other parts.
        results = {one["toolCallId"]: one["content"] for one in messages if one["role"] == "tool"}
        return "".join(texts), results, {call["id"]: call["function"] for call in calls}

    def _end(self, last: Any) -> None:
        own = [one for one in self.messages if "subagentRunId" not in one]
        self.texts = [one["content"] for one in own if one["role"] == "assistant" and one.get("content")]
        names = {call["id"]: call["function"]["name"] for one in own for call in one.get("toolCalls", ())}
        results = {one["toolCallId"]: one["content"] for one in own if one["role"] == "tool"}
        self.results = {
            call.removeprefix(f"{self.run}:"): ("refused", "") if words == "not approved" else ("told", words)
            for call, words in results.items()
            if names.get(call) not in CALLERS
        }
        outcome, self.waits = last.get("outcome", {}), []
        if last["type"] == "RUN_ERROR":
            self.how = "stopped" if last.get("code") in ("internal", "paused") else "failed"
        elif outcome.get("type") == "cancelled":
            self.how = "cancelled"
        else:
            self.how = "done"
            self.waits = [one["id"] for one in outcome.get("interrupts", ()) if one["reason"] != "input_required"]

    def _take(self, one: Any) -> None:
        match one["type"]:
            case "TEXT_MESSAGE_START":
                whose = {"subagentRunId": one["subagentRunId"]} if "subagentRunId" in one else {}
                self.messages.append({"id": one["messageId"], "role": one["role"], "content": "", **whose})
            case "TEXT_MESSAGE_CONTENT":
                next(x for x in reversed(self.messages) if x.get("id") == one["messageId"])["content"] += one["delta"]
            case "TOOL_CALL_START":
                whose = {"subagentRunId": one["subagentRunId"]} if "subagentRunId" in one else {}
                function = {"name": one["toolCallName"], "arguments": ""}
                call = {"id": one["toolCallId"], "type": "function", "function": function}
                carrier = next((x for x in self.messages if x["id"] == one["parentMessageId"]), None)
                if carrier is None:
                    carrier = {"id": one["parentMessageId"], "role": "assistant", **whose}
                    self.messages.append(carrier)
                carrier.setdefault("toolCalls", []).append(call)
            case "TOOL_CALL_ARGS":
                calls = [call for message in self.messages for call in message.get("toolCalls", ())]
                (call,) = [call for call in calls if call["id"] == one["toolCallId"]]
                call["function"]["arguments"] += one["delta"]
            case "TOOL_CALL_RESULT":
                whose = {"subagentRunId": one["subagentRunId"]} if "subagentRunId" in one else {}
                self.messages.append({"id": one["messageId"], "role": "tool", "content": one["content"], **whose})
                self.messages[-1]["toolCallId"] = one["toolCallId"]
            case "MESSAGES_SNAPSHOT":
                self.messages = copy.deepcopy(one["messages"])

    def as_told(self, state: str, words: str) -> tuple[str, str]:
        return (state, "") if state == "refused" else ("told", words)

    async def decide(self, yes: bool) -> None:
        await self._post(
            {
                "messages": [dict(one) for one in self.messages],
                "resume": [{"interruptId": one, "status": "resolved", "payload": yes} for one in self.waits],
            }
        )

    def check(self, kept: Kept) -> None:
        if self.how == "failed" and kept.state.phase != "finished":
            return
        if self.how == "failed" and kept.how == "limit":
            self.how = "limit"
        # What an agent says that the conversation was handed on to is told as that agent's.
        super().check(replace(kept, texts=kept.own_texts))


FRONTS = (Chat, Responses, UseChat, Agui)
