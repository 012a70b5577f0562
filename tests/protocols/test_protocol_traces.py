"""The writers send byte for byte what the real clients have read, and what those made of it is what the run said."""

import json
from typing import Any

import front_traces
import pytest


def kept(question: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((front_traces.FOLDER / f"{question}.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("question", front_traces.QUESTIONS)
def test_what_is_sent_is_what_the_clients_have_read(question: str) -> None:
    recorded = kept(question)
    sent = {name: front_traces.digest(stream) for name, stream in front_traces.streams(recorded["events"]).items()}
    assert sent == recorded["digests"], "have the real clients read it: TREADLE_RECORD=1 make test-peers"


def said(made: dict[str, Any]) -> dict[str, str]:
    """The text that each client has of the answer."""
    found = {}
    for name in ("ai_sdk_6_first", "ai_sdk_6", "ai_sdk_7"):
        found[name] = "".join([part["text"] for part in made[name]["message"]["parts"] if part["type"] == "text"])
    messages = [one.get("content") or "" for one in made["ag_ui"]["messages"] if one["role"] == "assistant"]
    found["ag_ui"] = "".join(messages)
    found["chat"] = made["chat"][0]["content"].replace("\n\n", "")
    found["responses"] = made["responses"]["output_text"]
    return found


@pytest.mark.parametrize(
    ("question", "answer"), [("think", "I thought about it."), ("parallel", "Let me see.I know both.")]
)
def test_every_client_has_the_whole_answer(question: str, answer: str) -> None:
    assert set(said(kept(question)["made"]).values()) == {answer}


def test_of_a_reply_that_broke_off_each_client_has_what_it_can_be_told() -> None:
    found = said(kept("withdrawn")["made"])
    taken_back = {name: text for name, text in found.items() if text == "I say it again."}
    assert set(taken_back) == {"ai_sdk_7", "ag_ui", "responses"}
    assert all("I say it again." in text for text in found.values())


def test_every_client_of_the_ai_sdk_has_the_same_tools() -> None:
    for question in front_traces.QUESTIONS:
        made = kept(question)["made"]
        states = {
            name: [
                (part["toolCallId"], part["state"], part["input"])
                for part in made[name]["message"]["parts"]
                if "toolCallId" in part and part["state"] != "output-error"
            ]
            for name in ("ai_sdk_6_first", "ai_sdk_6", "ai_sdk_7")
        }
        assert states["ai_sdk_6_first"] == states["ai_sdk_6"] == states["ai_sdk_7"], question
