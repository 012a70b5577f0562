"""The tools that are offered, read for their words: names, parameters, what they return, how well they fit a clause.

Built from `ToolSpec`s alone. `plan` asks it which tool fits, `arguments` what a parameter is like.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import dropwhile, islice, takewhile
from typing import Any

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.offline.grammar.english import EXPRESSION_WORDS, PLAIN_VERBS, word_set
from treadle.models.offline.grammar.question import Clause, read_clause
from treadle.models.offline.grammar.words import alike, is_function_word, is_verb, parts, singular, stem, tokens
from treadle.models.offline.plan.commands import Commands
from treadle.models.offline.plan.deeds import read_deed
from treadle.models.offline.plan.naming import owner_told
from treadle.models.offline.plan.outputs import Output, read_outputs
from treadle.models.offline.plan.schemas import Shape, resolve, shape_of, types_of
from treadle.models.offline.plan.told import told_noun, told_values

# What tells two parameters of one kind apart: source_a and source_b, from_currency and to_currency.
MARKERS = word_set(
    "a b c x y 1 2 one two left right first second from to old new base other target src dst source1 source2 start end "
    "baseline origin destination"
)
_PLAIN_STEMS = frozenset(stem(word) for word in PLAIN_VERBS)
_VAGUE = word_set("id ids name names key code number no nr value each")
_EXAMPLES = re.compile(r"(?:e\.g\.|for example|such as|one of|i\.e\.|examples?:|like)[:,]?\s*([^.;()]+)", re.IGNORECASE)
_NAMES = re.compile(r"\b[A-Z][\w-]*")
_QUOTES = re.compile(r"['\"`“]([^'\"`“”]{1,40})['\"`”]")


@dataclass(frozen=True)
class Param:
    """A parameter of a tool.

    `stems` are the words of its name; `nouns` the same without what only tells it from its siblings, and for a plain
    `id` or `name` the words of the tool's own noun. `measured` are the stems of the units that it is said to be
    told in.
    """

    name: str
    schema: Json
    required: bool
    description: str
    stems: tuple[str, ...]
    nouns: tuple[str, ...]
    shape: Shape
    types: frozenset[str]
    enum: tuple[Any, ...]
    examples: tuple[str, ...]
    measured: frozenset[str] = frozenset()

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the name's words and of its description."""
        return frozenset(self.stems) | _content(self.description)

    @cached_property
    def choices(self) -> frozenset[str]:
        """The names that it offers to choose from, in lower case."""
        return frozenset(each.lower() for each in self.enum if isinstance(each, str))

    @property
    def is_expression(self) -> bool:
        """Whether it takes an arithmetic expression."""
        return self.shape == "text" and bool({stem(word) for word in EXPRESSION_WORDS} & set(self.stems))

    @property
    def item_schema(self) -> Json:
        """The schema of a list's items."""
        items = self.schema.get("items", {})
        return items if isinstance(items, dict) else {}


@dataclass(frozen=True)
class KnownTool:
    """A tool's words, each with the weight of the place where it stands.

    `told` are the stems of its name and description; `named` those of its name, parameters and outputs.
    """

    spec: ToolSpec
    params: tuple[Param, ...]
    outputs: tuple[Output, ...]
    name_stems: tuple[str, ...]
    weights: dict[str, float]
    told: frozenset[str]
    named: frozenset[str]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.spec.name

    @property
    def required(self) -> tuple[Param, ...]:
        """The parameters that a call cannot do without."""
        return tuple(param for param in self.params if param.required)

    @cached_property
    def choices(self) -> frozenset[str]:
        """The names that it offers to choose from, in lower case."""
        return frozenset(each for param in self.params for each in param.choices)

    @cached_property
    def _commands(self) -> Commands:
        returns = str((self.spec.output_schema or {}).get("type", ""))
        shapes = tuple("expression" if param.is_expression else param.shape for param in self.params)
        takes = frozenset(noun for param in self.required for noun in param.nouns)
        summary, also = read_deed(self.summary, takes)
        return Commands(self.name, summary, self.spec.changes, shapes, returns, takes, also)

    @property
    def called(self) -> frozenset[str]:
        """The verbs that the tool itself is called and described by."""
        return self._commands.called

    @property
    def change(self) -> frozenset[str] | None:
        """The verbs that command this tool, unless it says that it only tells something; then None."""
        return self._commands.change

    @property
    def may_change(self) -> bool:
        """Whether nothing says that it only tells something."""
        return self.change is not None

    @property
    def is_a_thing(self) -> bool:
        """Whether nothing is said of it, and it is called by nothing but what one asks for: `movie`."""
        return self._commands.is_a_thing

    @property
    def lists(self) -> bool:
        """Whether it can be called with nothing and tells of many things."""
        listing = {"list", "show", "describ", "enumer", "catalog", "all", "avail"} & set(self.name_stems)
        whole = (self.spec.output_schema or {}).get("type") == "array"
        last = ("", *parts(self.name))[-1]
        told = not self.params and any("array" in output.types for output in self.outputs)
        told = told or (whole and (not self.params or singular(last) != last))
        return not self.required and (bool(listing) or told)

    @property
    def summary(self) -> str:
        """The first sentence of its description."""
        return re.split(r"(?<=[.!?])\s|\n", self.spec.description.strip(), maxsplit=1)[0].rstrip(".")

    def fit(self, word: str) -> float:
        """How strongly the stem `word` speaks for this tool."""
        direct = self.weights.get(word, 0.0)
        return max(direct, max((weight * alike(word, other) for other, weight in self.weights.items()), default=0.0))


def tells_it(tool: KnownTool, param: Param) -> bool:
    """Whether a tool is called by what a parameter of another one takes, as `get_customer_id` tells the customer ID."""
    named = tool.name_stems[-len(param.stems) :] == param.stems and len(param.stems) > 1
    return named and tool.change is None and all(param.name != own.name for own in tool.params)


def read_tool(spec: ToolSpec) -> KnownTool:
    """Reads a tool's name, description and schemas."""
    root = spec.input_schema
    required = set(root.get("required", ()))
    name_words = parts(spec.name)
    nouns = tuple(stem(word) for word in name_words if not is_verb(word) and not is_function_word(word))
    properties = root.get("properties", {})
    taken = {stem(name) for name in properties} | {stem("set")}  # "Set" opens a name as a verb only.
    # The `name` of `set_salary(name, salary)` is no salary's, nor that of `get_salary(name)`, "salary of an employee".
    owners = owner_told(spec.description, tuple(noun for noun in nouns[-1:] if noun not in taken))
    called = _done_to(name_words, spec.description) or tuple(noun for noun in nouns if noun not in taken)
    params = tuple(
        _param(
            name, resolve(schema, root), root, name in required, (name == "name" and owners) or called, spec.description
        )
        for name, schema in properties.items()
    )
    outputs = tuple(read_outputs(spec.output_schema or {}, spec.output_schema or {}, 0))
    weights: dict[str, float] = {}

    def weigh(words: Sequence[str] | frozenset[str], weight: float) -> None:
        for word in words:
            weights[word] = max(weights.get(word, 0.0), weight)

    examples = {stem(word) for param in params for example in param.examples for word in parts(example)}
    examples |= {stem(word) for told in _EXAMPLES.findall(spec.description) for word in _NAMES.findall(told)}
    for word in name_words:
        if not is_function_word(word) or word in ("time", "list"):
            weigh([stem(word)], 0.8 if word in PLAIN_VERBS else 3.0)
    first, *further = re.split(r"(?<=[.!?])\s|\n\n", spec.description.strip(), maxsplit=1)
    weigh(_content(first) - examples, 1.2)
    weigh(_content(" ".join(further)) - examples, 0.7)
    for param in params:
        weigh(param.nouns, 1.2 if param.required else 0.4)
        weigh(_content(param.description) - examples, 0.5)
        weigh([stem(str(value)) for value in param.enum], 1.0)
    for output in outputs:
        weigh(output.stems, 1.5)
    name_stems = tuple(stem(word) for word in name_words)
    told = frozenset(name_stems) | {token.stem for token in tokens(spec.description)}
    named = frozenset([*name_stems, *(w for p in params for w in p.nouns), *(w for o in outputs for w in o.stems)])
    return KnownTool(spec, params, outputs, name_stems, weights, told, named)


def _done_to(name: Sequence[str], description: str) -> tuple[str, ...]:
    """The stem of what a tool is for that is called by its verb alone: the machine of `lock`, "Locks a machine"."""
    said = tokens(re.split(r"(?<=[.!?])\s|\n", description.strip(), maxsplit=1)[0])
    if len(name) != 1 or not said or said[0].stem != stem(name[0]):
        return ()
    behind = dropwhile(lambda token: token.low not in ("a", "an"), said)
    run = list(takewhile(lambda token: not is_function_word(token.text), islice(behind, 1, None)))
    # "Plants a number of trees" counts them.
    return (run[-1].stem,) if run and run[-1].low not in ("number", "amount", "quantity") else ()


def _content(text: str) -> frozenset[str]:
    text = _QUOTES.sub(" ", text)
    return frozenset(
        token.stem
        for token in tokens(text)
        if token.text.isalpha() and not is_function_word(token.text) and token.stem not in _PLAIN_STEMS
    )


def _param(name: str, schema: Json, root: Json, required: bool, tool_nouns: tuple[str, ...], told: str) -> Param:
    if "items" in schema:
        items = resolve(schema["items"], root)
        inner = {name: resolve(field, root) for name, field in items.get("properties", {}).items()}
        schema = {**schema, "items": {**items, "properties": inner} if inner else items}
    description = str(schema.get("description", ""))
    words = parts(name)
    kept = tuple(stem(word) for word in words if word not in MARKERS and not word.isdigit())
    plain = tuple(stem(word) for word in words if word not in MARKERS and word not in _VAGUE)
    if words == ("to",) and "from" not in root.get("properties", {}):
        plain = (stem("recipient"),)
    if not plain and (noun := told_noun(description)):
        plain = (stem(noun),)
    examples = [match for found in _EXAMPLES.findall(description) for match in re.split(r",|\bor\b|\band\b", found)]
    examples = [re.sub(r"^[\s'\"`“]+|[\s'\"`”]+$", "", text) for text in [*examples, *_QUOTES.findall(description)]]
    examples += [str(value) for value in schema.get("examples", ())]
    shape = shape_of(schema)
    enum = schema.get("enum") or schema.get("items", {}).get("enum") or ()
    if not enum and shape == "text":
        enum = told_values(description)
    return Param(
        name=name,
        schema=schema,
        required=required,
        description=description,
        stems=tuple(stem(word) for word in words),
        nouns=plain or (tool_nouns[-1:] if tool_nouns else kept) or kept,
        shape=shape,
        types=types_of(schema),
        enum=tuple([schema["const"]] if "const" in schema else enum),
        examples=tuple(dict.fromkeys(text for text in examples if text and len(text) <= 40)),
        measured=frozenset(
            stem(unit.lower())
            for unit in re.findall(rf"\b{re.escape(words[-1])} in (?:an? )?(\w+)", told, re.IGNORECASE)
        )
        if words
        else frozenset(),
    )


class Toolbox:
    """The tools offered, and how much each word tells them apart."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self.tools = tuple(read_tool(spec) for spec in specs)
        self._rarity: dict[str, float] = {}
        called = [words for tool in self.tools for words in (tool.name_stems, *(p.nouns for p in tool.params))]
        self._nouns = frozenset(word for words in called for word in words)

    def read(self, text: str, today: date | None) -> Clause:
        """Reads a clause, in which what the tools are called by is no name."""
        return read_clause(text, today, self._nouns)

    def is_choice_of_another(self, param: Param, text: str) -> bool:
        """Whether a tool offers `text` to choose from, and none does so for what is called as a parameter is: what is a
        choice is the name of nothing of another kind."""
        offered = [each for tool in self.tools for each in tool.params if {text, singular(text)} & each.choices]
        return bool(offered) and not any(each.nouns[-1:] == param.nouns[-1:] for each in offered)

    def rarity(self, word: str) -> float:
        """How much the stem `word` tells the tools apart: more, the fewer tools it speaks for."""
        if word not in self._rarity:
            count = sum(tool.fit(word) > 0 for tool in self.tools)
            self._rarity[word] = math.log(1 + (len(self.tools) + 1) / (count or 1))
        return self._rarity[word]

    def score(self, tool: KnownTool, stems: Sequence[str], feeders: Sequence[KnownTool] = ()) -> float:
        """How well the stems of a clause speak for `tool`; 0 if none does.

        Args:
            tool: the tool.
            stems: the stems.
            feeders: tools that would be called first for it, whose words count nearly as much.
        """
        fits = {word: max([tool.fit(word), *(0.9 * other.fit(word) for other in feeders)]) for word in stems}
        return sum(fit * self.rarity(word) for word, fit in fits.items())

    def named(self, name: str) -> KnownTool | None:
        """The tool called `name`."""
        return next((tool for tool in self.tools if tool.name == name), None)
