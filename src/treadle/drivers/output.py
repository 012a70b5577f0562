"""The type that an answer must have: how the model is asked for it, and the reading of what it said.

There are three ways, in the order in which they are taken: `native`, where the provider holds its replies to a JSON
Schema; `tool`, a final tool whose arguments are the answer; `prompted`, where the instructions say it. The final tool
is never run: `handed_in` makes its call the text of the reply, so that all that follows is the same for the three.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, cast, get_args

import msgspec
from jiter import from_json

from treadle.drivers.configuration import Answer, AnswerType, Configuration
from treadle.drivers.kinds import read_from_json
from treadle.kernel.errors import PassesThrough
from treadle.kernel.messages import (
    AssistantMessage,
    FinishReason,
    Json,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolSpec,
)
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.models.profile import OutputMode
from treadle.tools.errors import describe_exception
from treadle.tools.exact import Numbers, numbers_of
from treadle.tools.explain import name_of
from treadle.tools.output import json_form
from treadle.tools.readable import validator_of

# A fence's line ends at the first line's end: of a model that writes nothing but these each would be tried.
FENCE = re.compile(r"```(?:json)?[^\S\n]*\n(.*?)\n?```", re.DOTALL)

_FINAL = "final_answer", "Gives the answer (", ") and ends the task."
"""The name of the final tool, with as many underscores as it takes, and what stands around the type in its words."""

WRAPPED = "result"
"""The property that holds an answer that is no object, where only objects can be asked for."""

_IN_OBJECT = re.compile(rf'\s*\{{\s*"{WRAPPED}"\s*:(.*)\}}\s*', re.DOTALL)


def answer_type(output: Any, mode: OutputMode, taken: Collection[str] = ()) -> AnswerType:
    """How an answer of the type `output` is asked for and read.

    Args:
        output: a Pydantic model, a dataclass, a TypedDict, or any other type that Pydantic knows.
        mode: how the model is to be asked for it.
        taken: names of tools, which the final tool must not have.

    Raises:
        Misuse: it is not such a type.
    """
    adapter, schema = read_from_json(output)
    is_object = schema.get("type") == "object"
    wrapped = mode != "prompted" and not is_object
    if wrapped:
        schema = in_an_object(schema)
    name = getattr(output, "__name__", str(output))
    validator, numbers = validator_of(adapter), numbers_of(adapter.core_schema)

    def value(json: Any) -> Any:
        return _checked(validator, msgspec.json.encode(json))

    if mode == "tool":
        tool = ToolSpec(_free(_FINAL[0], taken), f"{_FINAL[1]}{name}{_FINAL[2]}", schema)
        told = (
            f"When you have the answer, give it by calling {tool.name}, and in no other way; also where the other "
            "tools are turned off."
        )
        wanted = f"Call {tool.name} with arguments that satisfy its schema."
        reading = _Reading(validator, numbers, is_object, wrapped, wanted)
        return AnswerType(name, told, lambda said: reading.answer(_last_text(said)), value, output, tool=tool)
    told = (
        "When you have the answer, reply with JSON alone, without any other text, that satisfies this JSON Schema:\n"
        + msgspec.json.encode(schema).decode()
    )
    wanted = "Reply with JSON alone that satisfies the schema in your instructions."
    reading = _Reading(validator, numbers, is_object, wrapped, wanted)
    in_words = mode == "prompted"
    return AnswerType(name, told, lambda said: reading.answer(said.text), value, output, schema, in_words=in_words)


def told_its_way(config: Configuration, messages: Iterable[Message]) -> str | None:
    """The system message of a run that goes on with a model which is asked for the answer in another way than the one
    that `messages` tell of, with what that model is to be told of it; None if they may stay as they are."""
    if (output := config.output) is None:
        return None
    told = "\n\n".join([message.text for message in messages if isinstance(message, SystemMessage)])
    if told.endswith(output.instructions):
        return None
    ways = [answer_type(output.kind, mode, config.tools).instructions for mode in get_args(OutputMode)]
    return next((told.removesuffix(way) + output.instructions for way in ways if told.endswith(way)), None)


def typed_output(config: Configuration, state: RunState) -> Any:
    """The answer of a run as a value of its type, read anew from the reply that gave it: the journal holds JSON only.

    Where the reply no longer fits, because the type has changed since, it is that JSON.
    """
    output, stop = config.output, state.stop
    if output is None or stop is None or stop.reason == "external_tool":
        return state.output
    if state.output is None and stop.reason != "answered":
        return None
    with suppress(ValueError):
        return answer_in(state.steps[-1], output).value
    with suppress(ValueError):
        return output.value(state.output)
    return state.output


def as_json(answer: Any, read_from: Json) -> Json:
    """An answer as JSON; where its type has no such form (bytes that are no text, say), what it was read from."""
    try:
        return cast(Json, json_form(answer))
    except Exception:  # a serialiser of the user's may raise anything
        return read_from


def answer_in(step: Step, kind: AnswerType) -> Answer:
    """The answer in the reply of a step.

    Raises:
        ValueError: there is none of that kind, it is a number of which nobody knows whether it has more digits, or the
            reply was withheld, and with it whatever it would have said of what looks like an answer.
    """
    message = step.message or AssistantMessage()
    if step.finish in ("content_filter", "refusal"):
        raise ValueError("the reply was withheld, or refuses")
    if step.finish not in ("stop", "tool_calls") and _last_text(message)[-1:].isdigit():
        raise ValueError("the reply was cut off in a number")
    return kind.read(message)


def sent_back(state: RunState) -> bool:
    """Whether the last reply was an answer of which the model was told why it could not stand."""
    last = state.steps[-1] if state.steps else None
    return last is not None and not last.calls and state.accounts.errors > last.decision.errors


def answer_said(state: RunState) -> str:
    """The typed answer of a run in the model's own JSON, without what else it said; where there is none, the text."""
    if state.output is None:
        return state.text
    last = state.steps[-1].message if state.steps and not state.handed_on else None
    return json_in(state.text if last is None else _last_text(last)) or state.text


def handed_in(message: AssistantMessage, finish: FinishReason, tool: str) -> tuple[AssistantMessage, FinishReason]:
    """A reply with each call of the final `tool` as the text that it stands for, and why the reply ended then.

    Those texts stand last, whatever the model said after them: the last text is its answer.
    """
    given = [part for part in message.content if isinstance(part, ToolCall) and part.name == tool]
    if not given:
        return message, finish
    rest = [part for part in message.content if not isinstance(part, ToolCall) or part.name != tool]
    said = AssistantMessage((*rest, *[Text(call.arguments or "{}") for call in given]))
    return said, "stop" if finish == "tool_calls" and not said.calls else finish


def is_final(tool: ToolSpec) -> bool:
    """Whether a tool that a model is offered is the final one of a typed answer."""
    name, before, after = _FINAL
    told = tool.description
    return tool.name.rstrip("_") == name and told.startswith(before) and told.endswith(after)


def in_an_object(schema: Json) -> Json:
    """The schema of an object that holds a value of `schema`; its definitions stay where references look for them."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    properties = {"properties": {WRAPPED: inner}, "required": [WRAPPED], "additionalProperties": False}
    return {"type": "object", **properties, **definitions}


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _last_text(message: AssistantMessage) -> str:
    """The last text: where the final tool was called, what it was called with; there may be words before."""
    return next((part.text for part in reversed(message.content) if isinstance(part, Text)), "")


class _Reading(NamedTuple):
    """How an answer is read.

    Attributes:
        validator: by what.
        numbers: what its numbers become.
        is_object: whether the type is an object itself.
        wrapped: whether it was asked for in an object.
        wanted: what to say if none fits.
    """

    validator: Any
    numbers: Numbers
    is_object: bool
    wrapped: bool
    wanted: str

    def answer(self, text: str) -> Answer:
        """The answer in `text`. Raises ValueError, in words for the model, if there is none."""
        found = json_in(text)
        if twice := _said_twice(found):
            raise ValueError(f"{twice}. {self.wanted}")
        forms = [found.encode()]
        if not self.is_object:
            # It may have been given to an agent, or by a model, of another mode.
            forms.insert(0 if self.wrapped else 1, _unwrapped(found))
        fault: ValueError | None = None
        for form in dict.fromkeys(forms):
            try:
                return self._read(self._exact(form))
            except ValueError as error:
                fault = fault or error
        raise fault or ValueError(self.wanted)

    def _read(self, json: bytes) -> Answer:
        from pydantic import ValidationError
        from pydantic_core import to_json

        try:
            value = _checked(self.validator, json)
            # What is no number goes into the journal as text, as in a tool's result: null might be taken for another.
            return Answer(value, from_json(to_json(from_json(json), inf_nan_mode="strings")))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}" for fault in error.errors()[:5]
            )
            raise ValueError(f"{faults}. {self.wanted}") from error
        except _Unchecked as error:
            raise ValueError(f"{error}. {self.wanted}") from error

    def _exact(self, json: bytes) -> bytes:
        """`json` with each number as text that a `Decimal` is to be made of and a float would cut.

        Raises:
            ValueError: a number would be another, in words for the model.
        """
        try:
            found, lost = self.numbers.read(json.decode(), as_text=True)
        except ValueError:
            # It is no JSON: the check says so, and in which words.
            return json
        if lost:
            faults = "; ".join(f"{name_of(one.path)}: {one.why}; given was {one.text:.100}" for one in lost[:5])
            raise ValueError(f"{faults}. {self.wanted}")
        return json if found is None else msgspec.json.encode(found)


class _Unchecked(ValueError):
    """A validator of the user's raised what is no objection, so that nobody knows whether the answer fits."""


def _checked(validator: Any, json: bytes) -> Any:
    """`json` as a value of the type. Raises ValueError if it is none, whatever a validator of the user's raises."""
    from pydantic import ValidationError

    try:
        return validator.validate_json(json)
    except (ValidationError, PassesThrough):
        raise
    except BaseException as error:  # a validator of the user's may raise anything
        raise _Unchecked(f"It could not be checked: {describe_exception(error)[:500]}") from error


def _unwrapped(text: str) -> bytes:
    """The JSON inside the object that was asked for; `text` itself where there is no such object."""
    found = _IN_OBJECT.fullmatch(text)
    try:
        value = from_json(text.encode()) if found else None
    except ValueError:
        value = None
    inside = found is not None and isinstance(value, dict) and value.keys() == {WRAPPED}
    return found[1].encode() if found is not None and inside else text.encode()


def _said_twice(json: str) -> str:
    """What is wrong with JSON that has a key twice, of which only one value would be taken; empty for all else."""
    try:
        from_json(json.encode(), catch_duplicate_keys=True)
    except ValueError as error:
        return str(error) if "duplicate key" in str(error) else ""
    return ""


def json_in(text: str) -> str:
    """The JSON in a reply: the one fenced block that it has, else all of it."""
    for blocks in (_blocks(text), FENCE.findall(text)):
        if len(blocks) == 1:
            return str(blocks[0])
    return text.strip()


def _blocks(text: str) -> list[str]:
    """The blocks of JSON between fences that stand on lines of their own.

    No JSON has a line's end in a text, but it may well have a fence in one.
    """
    blocks: list[str] = []
    language, inside = "", list[str]()
    is_inside = False
    for line in text.split("\n"):
        mark = line.strip()
        if is_inside and mark != "```":
            inside.append(line)
        elif is_inside:
            if language in ("", "json"):
                blocks.append("\n".join(inside))
            is_inside = False
        elif mark.startswith("```") and "`" not in mark[3:]:
            language, inside, is_inside = mark[3:].strip().lower(), [], True
    return blocks
