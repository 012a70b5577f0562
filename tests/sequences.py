"""What the clients of AG-UI and of the AI SDK ask of the order of what is streamed; they end where it is another.

The rules are those of `verifyEvents` in `@ag-ui/client` 1.0 and of `processUIMessageStream` in `ai` 6 and 7, and that a
call, a message and a part are begun once: a client would add to one that it has.
"""

from collections.abc import Sequence
from typing import Any

OPENS = {
    "TEXT_MESSAGE_START": ("message", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
    "REASONING_START": ("span", "messageId"),
    "REASONING_MESSAGE_START": ("thought", "messageId"),
    "STEP_STARTED": ("step", "stepName"),
    "SUBAGENT_STARTED": ("subagent", "subagentRunId"),
}
GOES_ON = {
    "TEXT_MESSAGE_CONTENT": "message",
    "TOOL_CALL_ARGS": "call",
    "REASONING_MESSAGE_CONTENT": "thought",
}
CLOSES = {
    "TEXT_MESSAGE_END": "message",
    "TOOL_CALL_END": "call",
    "REASONING_END": "span",
    "REASONING_MESSAGE_END": "thought",
    "STEP_FINISHED": "step",
    "SUBAGENT_FINISHED": "subagent",
    "SUBAGENT_ERROR": "subagent",
}
FIELDS = dict(OPENS.values())


def check_ag_ui(events: Sequence[Any]) -> None:
    """The events of one answer, of whichever run and those below it."""
    first, *_, last = events
    assert first["type"] in ("RUN_STARTED", "RUN_ERROR"), first
    assert last["type"] in ("RUN_FINISHED", "RUN_ERROR"), last
    assert [one["type"] for one in events].count("RUN_STARTED") == (first["type"] == "RUN_STARTED")
    owners, is_open, messages = dict[tuple[str, str], Any](), set[tuple[str, str]](), dict[str, Any]()
    for place, one in enumerate(events):
        kind, whose = one["type"], one.get("subagentRunId")
        assert (kind in ("RUN_FINISHED", "RUN_ERROR")) == (place == len(events) - 1), events[place:]
        if kind in OPENS:
            what, field = OPENS[kind]
            # A step is its agent's own, and may be gone on with; all else is there once.
            key = (what, f"{whose}/{one[field]}" if what == "step" else one[field])
            assert key not in is_open, one
            assert what == "step" or key not in owners, f"{one} was there"
            is_open.add(key)
            owners[key] = whose
            if what == "subagent":
                above = one.get("parentSubagentRunId")
                assert above is None or ("subagent", above) in owners, one
            if what == "message":
                messages[one["messageId"]] = whose
            elif what == "call":
                assert messages.setdefault(one["parentMessageId"], whose) == whose, one
        elif kind in GOES_ON or kind in CLOSES:
            what = GOES_ON.get(kind) or CLOSES[kind]
            name = one[FIELDS[what]]
            key = (what, f"{whose}/{name}" if what == "step" else name)
            assert key in is_open, f"{one} goes on with what is not open"
            assert owners[key] == whose, one
            if kind in CLOSES:
                is_open.remove(key)
        elif kind == "MESSAGES_SNAPSHOT":
            assert None not in [message.get("subagentRunId", "") for message in one["messages"]], one
            messages |= {message["id"]: message.get("subagentRunId") for message in one["messages"]}
            # What was taken back may be told anew.
            there = {call["id"] for message in one["messages"] for call in message.get("toolCalls", ())}
            for what, name in [*owners]:
                if what in ("message", "thought", "span", "call") and name not in messages.keys() | there:
                    del owners[what, name]
        if whose is not None and kind not in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR"):
            assert ("subagent", whose) in is_open, f"{one} is of an agent that is not at work"
    assert last["type"] == "RUN_ERROR" or not is_open, is_open


def check_ai_sdk(parts: Sequence[Any], known: Sequence[str] = ()) -> None:
    """The parts of one answer, which goes on with a message that has these calls."""
    is_open, calls, streaming, before = set[str](), set(known), set[str](), set(known)
    assert parts[0]["type"] in ("start", "error"), parts[0]
    assert [one["type"] for one in parts].count("start") == (parts[0]["type"] == "start")
    for place, one in enumerate(parts):
        kind = one["type"]
        assert (kind in ("finish", "abort")) <= (place == len(parts) - 1), parts[place:]
        if kind in ("text-start", "reasoning-start"):
            assert one["id"] not in is_open, one
            is_open.add(one["id"])
        elif kind in ("text-delta", "reasoning-delta", "text-end", "reasoning-end"):
            assert one["id"] in is_open, one
            if kind.endswith("-end"):
                is_open.remove(one["id"])
        elif kind in ("start-step", "finish-step", "finish", "abort"):
            assert not is_open, one
            before = {*calls} if kind == "start-step" else before
        elif kind == "tool-input-start":
            assert one["toolCallId"] not in calls, f"{one} was there"
            calls.add(one["toolCallId"])
            streaming.add(one["toolCallId"])
        elif kind == "tool-input-delta":
            assert one["toolCallId"] in streaming, one
        elif kind == "tool-input-error":
            # A reply of an agent below broke off: the same call may be begun anew.
            calls.remove(one["toolCallId"])
        elif kind == "tool-input-available":
            calls.add(one["toolCallId"])
            streaming.discard(one["toolCallId"])
        elif kind.startswith("tool-") and kind != "tool-approval-response":
            assert one["toolCallId"] in calls, one
        elif kind == "reset-step":
            is_open, calls, streaming = set(), {*before}, set()
