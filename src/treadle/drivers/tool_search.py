"""Tool search: of many tools those are offered that fit what was asked, and the model can look for others.

Everything is chosen from the run's own history: a run that is taken up or replayed is offered the same. Tools are
ranked by the words that they share with the question, as Okapi BM25 does (Robertson and Zaragoza, The Probabilistic
Relevance Framework, 2009, equation 3.15; k1 = 1.2, b = 0.75), over their names, descriptions and parameters.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import Any, Final
from unicodedata import normalize

from treadle.context.corrected import result_text
from treadle.drivers.configuration import StepContext, StepSettings
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from treadle.tools import Tool, tool
from treadle.tools.agent_skills.active import narrowed
from treadle.tools.server import ToolServer

FIND: Final = "find_tools"
"""The name of the tool by which a model looks for others."""

_LATEST: Final = 3
"""How many of the last messages of the person are taken for what was asked."""

_READ: Final = 5_000
"""Characters at the beginning and at the end of a long text in which words are looked for."""

_K1, _B = 1.2, 0.75
# Letters of other alphabets belong to the word that they stand in.
_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SAY_NOTHING = "a an and are as at be by for from how i in is it its me my of on or the this to us we what with you"
_COMMON = frozenset(_WORD.findall(_SAY_NOTHING))


class ToolSearch:
    """Offers of many tools those that fit what was asked, in each step, and lets the model look for others.

    `Agent(model, tools=search.tools, prepare_step=search)`. A tool that was offered once, for it fits, was found or
    called, stays offered for the rest of the run, so does what an active skill allows, and tools of the agent that are
    not among `tools` are always offered. More are offered only when the model looks for tools or the person says more,
    so that a provider's cached prefix holds in between.

    Args:
        tools: the many, or plain functions to make tools of.
        most: how many of them fit at most, for a question and for each search.

    Attributes:
        tools: `tools`, and `find_tools`, by which the model looks for others.

    Raises:
        Misuse: `most` is less than 1, two tools have the same name, or one is a server of tools.
    """

    def __init__(self, tools: Iterable[Tool | Any], *, most: int = 8) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise Misuse(f"ToolSearch takes a whole number from 1 as most=; it was given {most!r:.60}")
        if isinstance(tools, Tool) or not isinstance(tools, Iterable):
            raise Misuse(f"ToolSearch takes a list of tools; it was given {tools!r:.60}")
        many = [self._of_the_many(one) for one in tools]
        names = Counter(one.name for one in many)
        if doubled := [name for name, count in names.items() if count > 1 or name == FIND]:
            raise Misuse(f"ToolSearch has several tools of the name {doubled[0]!r}")
        self._index = _Index(many)
        self._most = most
        self._told = {one.name: one.description.strip().partition("\n")[0].rstrip() for one in many}
        self.tools: tuple[Tool, ...] = (*many, self._finder())

    @staticmethod
    def _of_the_many(given: Any) -> Tool:
        if isinstance(given, Tool):
            return given
        if isinstance(given, ToolServer):
            raise Misuse(
                f"ToolSearch takes tools, and {given.name!r} is a server, which lists its tools while a run goes on; "
                "give the server to the agent beside the search's tools, and say with its only= which it offers"
            )
        return tool(given)

    def __call__(self, context: StepContext[Any]) -> StepSettings:
        """What a step is offered; see `prepare_step`."""
        offered = {name for name in context.tools if name not in self._told}
        # The one tool that the model is held to must be there, whatever was asked.
        offered.add(context.chosen.tool_choice or context.state.started.tool_choice)
        offered.update(self.fitting(_asked(context)))
        # A skill that has become active names the tools that it is about; nothing else may be offered then.
        offered.update(narrowed(context.state.messages, context.state.started.foreign_skills) or ())
        # What a journal's redaction has taken out of the words cannot be looked for again.
        offered.update(name for step in context.steps for name in step.offered or ())
        for call, result in _calls(context):
            offered.update(self._found(call, result) if call.name == FIND else [call.name])
        return StepSettings(tools=[name for name in context.tools if name in offered])

    def require(self, tools: Mapping[str, Tool]) -> None:
        """Refuses an agent's `tools` that have not all the many, or have the search, by the names that it knows.

        Raises:
            Misuse: the model would be told of a tool that there is not, or offered all of them.
        """
        finder = self.tools[-1]
        renamed = [name for name, one in tools.items() if one.function is finder.function and name != FIND]
        missing = [name for name in self._told if name not in tools]
        if renamed or missing:
            what = f"its {FIND!r} is called {renamed[0]!r}" if renamed else f"there is none named {missing[0]!r}"
            raise Misuse(
                f"ToolSearch offers its tools by their names, and among those of this agent {what}: give the agent "
                "tools=search.tools, and rename a tool before the search is given it, with tool.named(…)"
            )

    def _found(self, call: ToolCall, result: str) -> Iterable[str]:
        """What the model was told of. Found anew, it may be another: there may be other tools by now."""
        told = _read(result).get("tools")
        if isinstance(told, dict) and self._told.keys() >= told.keys():
            return told
        # Of what a hook, or a journal's redaction, made of it the names cannot be read.
        return self.fitting(str(_read(call.arguments).get("words", "")))

    def fitting(self, words: str) -> list[str]:
        """The names of the tools that fit `words`, the best first; those that share none of them do not."""
        ends = words if len(words) <= 2 * _READ else f"{words[:_READ]} {words[-_READ:]}"
        return self._index.best(ends, self._most)

    def _finder(self) -> Tool:
        @tool(name=FIND, effect="read")
        def find_tools(words: str) -> dict[str, Any]:
            """Finds tools beside those that you see, by words of what they should do. They can be called afterwards.

            Args:
                words: what the tool should do, in a few words.
            """
            found = {name: self._told[name] for name in self.fitting(words)}
            if found:
                return {"tools": found}
            return {"tools": {}, "message": "No tool has any of these words. Try others, or answer without."}

        return find_tools


class _Index:
    """Tools by the words that tell them."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names = [one.name for one in tools]
        self._counts = [Counter(_stems(_text_of(one))) for one in tools]
        self._lengths = [sum(count.values()) for count in self._counts]
        self._mean = sum(self._lengths) / len(tools) if tools else 1.0
        self._having = Counter(word for count in self._counts for word in count)

    def best(self, words: str, most: int) -> list[str]:
        wanted = set(_stems(words))
        scores = [(self._score(number, wanted), -number) for number in range(len(self._names))]
        return [self._names[-place] for score, place in sorted(scores, reverse=True)[:most] if score > 0]

    def _score(self, number: int, wanted: set[str]) -> float:
        count, total = self._counts[number], len(self._names)
        length = _K1 * (1 - _B + _B * self._lengths[number] / self._mean)
        return sum(
            log(1 + (total - self._having[word] + 0.5) / (self._having[word] + 0.5))
            * (count[word] * (_K1 + 1) / (count[word] + length))
            for word in sorted(wanted & count.keys())
        )


def _text_of(one: Tool) -> str:
    """What tells a tool; its name counts twice."""
    parameters = one.spec.input_schema.get("properties", {})
    told = " ".join(
        f"{name} {said.get('description', '')}" for name, said in parameters.items() if isinstance(said, dict)
    )
    return f"{one.name} {one.name} {one.description} {told}"


def _stems(text: str) -> Iterator[str]:
    """The words of a text, without those that say nothing and the endings of plurals."""
    for word in _WORD.findall(normalize("NFKC", text)):
        plain = word.casefold()
        if plain in _COMMON:
            continue
        yield plain[:-1] if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss") else plain


def _asked(context: StepContext[Any]) -> str:
    said = [one.text for one in context.state.messages if isinstance(one, UserMessage)]
    return " ".join(said[-_LATEST:])


def _calls(context: StepContext[Any]) -> Iterator[tuple[ToolCall, str]]:
    """The calls that were made in this run, and those of the conversation before it, with their results."""
    records = {record.id: record for step in context.steps for record in step.calls}
    for record in records.values():
        if _was_made(record):
            result = "" if record.result is None else record.result.text
            # What was run in its place, or with the arguments of a person, is what the result is of.
            yield record.doing, result
            yield record.call, result
    results = {one.call_id: result_text(one) for one in context.state.messages if isinstance(one, ToolMessage)}
    for message in context.state.messages:
        if isinstance(message, AssistantMessage):
            yield from ((call, results.get(call.id, "")) for call in message.calls if call.id not in records)


def _was_made(record: CallRecord) -> bool:
    return record.executed and not (record.result is not None and record.result.is_error)


def _read(text: str) -> dict[str, Any]:
    """A JSON object; what is none is empty."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
