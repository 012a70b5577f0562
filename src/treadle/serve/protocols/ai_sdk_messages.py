"""A chat as `useChat` holds it: messages with parts (`UIMessage`), made of what would have been streamed to it. Pure.

The forms are those of `uiMessagesSchema` of npm's `ai`, which refuses a part whose fields do not go with its state.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import is_not
from typing import Any, Final

from treadle.context.corrected import result_content
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    Json,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.serve.protocols.ai_sdk import SETTLED
from treadle.serve.protocols.wire import address, arguments_of, result_of, text_result

_SAID: Final[Mapping[str, str]] = {"text-start": "text", "reasoning-start": "reasoning"}


class Held:
    """The messages, oldest first. Parts that are streamed go to the last of them, and those of a call to where it is.

    Args:
        version: the newest version of the AI SDK whose parts may be in them.
    """

    def __init__(self, version: int = 6) -> None:
        self._newer = version >= 7
        self._messages: list[Json] = []
        self._calls: dict[str, Json] = {}
        self._said: dict[str, Json] = {}

    @property
    def messages(self) -> list[Json]:
        """They. No version takes one without parts.

        An answer that says nothing is there all the same: what is posted next names the last that the browser has.
        """
        for one in self._messages:
            if not one["parts"] and one["role"] == "assistant":
                one["parts"].append({"type": "step-start"})
        return [one for one in self._messages if one["parts"]]

    def run_begins(self) -> None:
        """What comes is of another run, whose calls may be called like those before."""
        self._calls, self._said = {}, {}

    def asked(self, name: str, content: str | Iterable[Content]) -> None:
        """A person said something, in a message called `name`."""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else [_part(one) for one in content]
        self._messages.append({"id": name, "role": "user", "parts": parts})

    def answers(self, name: str) -> None:
        """What comes is of an answer, in a message called `name`."""
        self._messages.append({"id": name, "role": "assistant", "parts": []})

    def without_last(self) -> None:
        """Takes the last message away."""
        self._messages.pop()

    def earlier(self, messages: Iterable[Message], name: str) -> None:
        """What was said before, of which no run is known; messages are called after `name`."""
        for number, message in enumerate(messages):
            match message:
                case UserMessage(content=content):
                    self.asked(f"{name}:{number}", content)
                case AssistantMessage(content=content):
                    if not self._messages or self._messages[-1]["role"] != "assistant":
                        self.answers(f"{name}:{number}")
                    self.take({"type": "start-step"})
                    for part in content:
                        self._replied(part)
                case ToolMessage() if message.call_id in self._calls:
                    if message.edited is not None:
                        self._calls[message.call_id]["input"] = arguments_of(message.edited)
                    content = result_content(message)
                    error = {"errorText": text_result(content)}
                    told = error if message.is_error else {"output": result_of(content)}
                    kind = "tool-output-error" if message.is_error else "tool-output-available"
                    self.take({"type": kind, "toolCallId": message.call_id, **told})
        self.run_begins()

    def _replied(self, part: Any) -> None:
        match part:
            case Text(text=text) | Thinking(text=text) if text:
                kind = "text" if isinstance(part, Text) else "reasoning"
                self._parts.append({"type": kind, "text": text, "state": "done"})
            case ToolCall():
                told = {"toolCallId": part.id, "toolName": part.name, "input": arguments_of(part.arguments)}
                self.take({"type": "tool-input-available", **told})

    @property
    def _parts(self) -> list[Json]:
        parts: list[Json] = self._messages[-1]["parts"]
        return parts

    def has_call_of(self, part: Json) -> bool:
        """Whether a part is of a call that is there."""
        kind: str = part["type"]
        return kind == "tool-approval-response" or (kind.startswith("tool-") and part["toolCallId"] in self._calls)

    def take(self, part: Json) -> None:
        """One part as it is streamed."""
        kind: str = part["type"]
        if kind in _SAID:
            self._said[part["id"]] = said = {"type": _SAID[kind], "text": "", "state": "done"}
            self._parts.append(said)
        elif kind.endswith("-delta") and part.get("id") in self._said:
            self._said[part["id"]]["text"] += part["delta"]
        elif kind == "start-step":
            self._parts.append({"type": "step-start"})
        elif kind in ("start", "finish"):
            metadata = self._messages[-1].setdefault("metadata", {})
            metadata.update(part.get("messageMetadata", {}))
        elif kind == "steering-message":
            data = {"type": "data-said", "id": part["id"], "data": {"text": part["parts"][0]["text"]}}
            self._parts.append(part if self._newer else data)
        elif kind.startswith("data-"):
            if "id" in part:
                self._keep(lambda one: (one["type"], one.get("id")) != (kind, part["id"]))
            self._parts.append(part)
        elif kind.startswith("tool-"):
            self._take_tool(kind, part)

    def _take_tool(self, kind: str, part: Json) -> None:
        if kind == "tool-approval-response":
            told = {"approved": part["approved"], **({"reason": part["reason"]} if "reason" in part else {})}
            for call in self._calls.values():
                if call.get("approval", {}).get("id") == part["approvalId"]:
                    call.update(state="approval-responded", approval={"id": part["approvalId"], **told})
            return
        name: str = part["toolCallId"]
        if kind == "tool-input-available":
            if name not in self._calls:
                self._calls[name] = _call(part)
                self._parts.append(self._calls[name])
            self._calls[name].pop("approval", None)
            self._calls[name].update(state="input-available", input=part["input"])
        elif name in self._calls:
            self._take_outcome(kind, part, self._calls[name])

    def _take_outcome(self, kind: str, part: Json, call: Json) -> None:
        if kind == "tool-approval-request":
            if call["state"].startswith("output-"):
                # A run below was told to its end before the question that the run above passed on.
                return
            why = {"requestReason": part["reason"]} if self._newer and "reason" in part else {}
            call.update(state="approval-requested", approval={"id": part["approvalId"], **why})
            call.pop("output", None)
        elif kind == "tool-output-denied":
            approval = {"id": call["toolCallId"], **call.get("approval", {}), "approved": False}
            call.update(state="output-denied", approval=approval)
        elif kind in ("tool-output-available", "tool-output-error"):
            call.pop("output", None)
            if call.get("approval", {}).get("approved") is not True:
                call.pop("approval", None)
            told = {"errorText": part["errorText"]} if kind.endswith("error") else {"output": part["output"]}
            by = {name: part[name] for name in SETTLED if name in part}
            call.update(state=kind.removeprefix("tool-"), **told, **by)

    def settled(self, waiting: Collection[str]) -> None:
        """The run stands so that these calls wait: of all others nobody is asked any more.

        A browser answers questions of the last message only, so there they are asked.
        """
        for name, call in self._calls.items():
            if call["state"] == "approval-requested" and name not in waiting:
                call.update(state="approval-responded", approval={"id": call["approval"]["id"], "approved": True})
            if name in waiting and not any([one is call for one in self._parts]):
                self._keep(partial(is_not, call))
                self._parts.append(call)
        self._keep(lambda one: one["type"] != "data-waiting" or one["data"]["toolCallId"] in waiting)

    def _keep(self, wanted: Callable[[Json], bool]) -> None:
        for message in self._messages:
            message["parts"] = [one for one in message["parts"] if wanted(one)]


def _call(part: Json) -> Json:
    title = {"title": part["title"]} if "title" in part else {}
    if part.get("dynamic"):
        return {"type": "dynamic-tool", "toolName": part["toolName"], "toolCallId": part["toolCallId"], **title}
    return {"type": f"tool-{part['toolName']}", "toolCallId": part["toolCallId"], **title}


def _part(one: Content) -> Json:
    if isinstance(one, Text):
        return {"type": "text", "text": one.text}
    name = getattr(one, "name", "")
    told = {"type": "file", "mediaType": one.media_type, "url": address(one)}
    return {**told, "filename": name} if name else told
