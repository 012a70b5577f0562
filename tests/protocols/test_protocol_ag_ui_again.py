"""A client of AG-UI that was cut off, wherever that was, and comes back by its run's id: it has each thing once."""

import copy
import json
import re
from typing import Any

import httpx2
import pytest

Messages = list[dict[str, Any]]
Events = list[dict[str, Any]]


def merged(messages: Messages, events: Events) -> Messages:
    """The thread as `@ag-ui/client` 1.0 has it after these events: what it is told it adds to what it has."""
    thread = copy.deepcopy(messages)

    def named(name: str, **new: Any) -> dict[str, Any]:
        found = next((one for one in thread if one["id"] == name), None)
        if found is None:
            found = {"id": name, **new}
            thread.append(found)
        return found

    for event in events:
        match event["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                named(event["messageId"], role=event["role"], content="")
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                named(event["messageId"])["content"] += event["delta"]
            case "TOOL_CALL_START":
                calls = named(event["parentMessageId"], role="assistant").setdefault("toolCalls", [])
                if event["toolCallId"] not in [call["id"] for call in calls]:
                    told = {"name": event["toolCallName"], "arguments": ""}
                    calls.append({"id": event["toolCallId"], "type": "function", "function": told})
            case "TOOL_CALL_ARGS":
                calls = [call for one in thread for call in one.get("toolCalls", ())]
                next(one for one in calls if one["id"] == event["toolCallId"])["function"]["arguments"] += event[
                    "delta"
                ]
            case "TOOL_CALL_RESULT":
                told = {"role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]}
                named(event["messageId"], **told)
            case "MESSAGES_SNAPSHOT":
                given = {one["id"]: one for one in copy.deepcopy(event["messages"])}
                thinks = any(one["role"] == "reasoning" for one in given.values())
                stays = [one for one in thread if one["id"] in given or (one["role"] == "reasoning" and not thinks)]
                thread = [given.get(one["id"], one) for one in stays]
                thread += [one for name, one in given.items() if name not in [had["id"] for had in thread]]
    return thread


def by_id(messages: Messages) -> dict[str, Any]:
    assert len({one["id"] for one in messages}) == len(messages)
    return {one["id"]: one for one in messages}


class Thread:
    """A thread, and the posts of a client in it."""

    def __init__(self, url: str, thread: str) -> None:
        self.url, self.thread = f"{url}/ag-ui/shop", thread

    def post(self, run: str, messages: Messages, **more: Any) -> Events:
        fixed = {"threadId": self.thread, "runId": run, "tools": [], "context": [], "state": {}}
        answer = httpx2.post(self.url, json={**fixed, "messages": messages, **more}, timeout=30)
        assert answer.status_code == 200, answer.text
        lines = [line for line in answer.text.split("\n\n") if line.startswith("data: ")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]

    def told_once(self, run: str, before: Messages, **more: Any) -> tuple[Messages, Events]:
        """Posts, and again from wherever it may have been cut off; what the client has in the end, each time."""
        first = self.post(run, before, **more)
        whole = merged(before, first)
        for cut in range(len(first) + 1):
            came_back = merged(before, first[:cut])
            assert by_id(merged(came_back, self.post(run, came_back, **more))) == by_id(whole), first[:cut][-1:]
        return whole, first


@pytest.fixture
def thread(url: str, request: pytest.FixtureRequest) -> Thread:
    return Thread(url, re.sub(r"\W", "-", request.node.name))


def asks(question: str) -> Messages:
    return [{"id": "u1", "role": "user", "content": question}]


@pytest.mark.parametrize("question", ["hello", "think", "parallel", "break", "delegate", "twins", "loop", "hostile"])
def test_a_client_that_was_cut_off_has_each_thing_once_when_it_is_back(thread: Thread, question: str) -> None:
    """The text stood twice in one message or in two of them, and the arguments of a call, `{…}{…}`, were no JSON."""
    if question == "twins":
        from front_agents import GATE

        GATE.open.set()
    thread.told_once("r1", asks(question))


@pytest.mark.parametrize("question", ["pay", "clerk"])
def test_a_client_that_was_cut_off_after_its_answer_keeps_what_it_was_told_before(
    thread: Thread, question: str
) -> None:
    asked, events = thread.told_once("r1", asks(question))
    answers = [
        {"interruptId": one["id"], "status": "resolved", "payload": True} for one in events[-1]["outcome"]["interrupts"]
    ]
    done, _ = thread.told_once("r2", asked, resume=answers)
    assert by_id(asked).keys() < by_id(done).keys()


@pytest.mark.parametrize("part", ["text-{}-0", "thinking-{}-0", "said-{}"])
def test_an_id_with_more_digits_than_any_has_is_one_of_the_clients_own(thread: Thread, part: str) -> None:
    """It broke the stream off, and left a traceback in the server's log."""
    first = thread.post("r1", asks("hello"))
    run = next(one["messageId"] for one in first if one["type"] == "TEXT_MESSAGE_START").rpartition(":")[0]
    said = {"id": f"{run}:{part.format('9' * 5_000)}", "role": "assistant", "content": "well"}
    assert thread.post("r1", [*asks("hello"), said])[-1]["type"] == "RUN_FINISHED"
