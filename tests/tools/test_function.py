"""@tool: what the model is told of a function, and what is refused at once."""

import dataclasses
import enum
import functools
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Optional, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from treadle import RunContext, StepContext
from treadle.tools import BadTool, Injected, Tool, ToolContext, ToolResult, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Filter(BaseModel):
    column: str
    values: list[int] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Answer(TypedDict):
    total: int


def properties(made: Tool) -> dict[str, Any]:
    return made.input_schema["properties"]


def test_schema_from_types_and_google_docstring() -> None:
    @tool
    def search(query: str, limit: Annotated[int, Field(ge=1, le=10)] = 5, colour: Colour = Colour.RED) -> Answer:
        """Searches the shop.

        Looks at names only.

        Args:
            query: what to look for,
                in words.
            limit (int): how many to give.
            colour: which colour.

        Returns:
            the total.
        """
        return {"total": limit}

    assert search.name == "search"
    assert search.description == "Searches the shop.\n\nLooks at names only."
    assert search.input_schema["required"] == ["query"]
    assert search.input_schema["additionalProperties"] is False
    assert properties(search)["query"] == {"type": "string", "description": "what to look for, in words."}
    assert properties(search)["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
        "default": 5,
        "description": "how many to give.",
    }
    assert properties(search)["colour"]["description"] == "which colour."
    assert search.output_schema is not None
    assert search.output_schema["properties"] == {"total": {"type": "integer"}}
    assert search.effect == "write"
    assert search.spec is search.spec


NUMPY = """Adds.

    Parameters
    ----------
    a : int
        the first
    b, c : int
        the others

    Returns
    -------
    int
        the sum
    """
SPHINX = """Adds.

    :param a: the first
    :param int b: the others
    :param c: the others
    :returns: the sum
    """


@pytest.mark.parametrize("docstring", [NUMPY, SPHINX])
def test_other_docstring_styles(docstring: str) -> None:
    def add(a: int, b: int, c: int) -> int:
        return a + b + c

    add.__doc__ = docstring
    made = tool(add)
    assert made.description == "Adds."
    assert {name: each["description"] for name, each in properties(made).items()} == {
        "a": "the first",
        "b": "the others",
        "c": "the others",
    }


@pytest.mark.parametrize(
    ("annotation", "given", "wanted"),
    [
        (int, "3", 3),
        (float, "3", 3.0),
        (Decimal, '"1.10"', Decimal("1.10")),
        (Colour, '"blue"', Colour.BLUE),
        (Literal["a", "b"], '"a"', "a"),
        (Optional[int], "null", None),  # noqa: UP045
        (list[int], "[1, 2]", [1, 2]),
        (tuple[int, str], '[1, "x"]', (1, "x")),
        (set[int], "[1, 1]", {1}),
        (dict[str, Any], '{"a": [1]}', {"a": [1]}),
        (Filter, '{"column": "c"}', Filter(column="c")),
        (list[Filter], '[{"column": "c", "values": [1]}]', [Filter(column="c", values=[1])]),
        (Point, '{"x": 1}', Point(1)),
        (Answer, '{"total": 1}', {"total": 1}),
        (bytes, '"abc"', b"abc"),
        (Any, "[null]", [None]),
    ],
)
def test_arguments_arrive_as_the_types_say(annotation: Any, given: str, wanted: Any) -> None:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation
    assert tool(take).validate(f'{{"value": {given}}}') == {"value": wanted}


@pytest.mark.parametrize(
    "name", ["schema", "json", "model_config", "_private", "copy", "self_", "class_", "name", "arguments"]
)
def test_parameter_names_that_pydantic_models_forbid(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def take({name}: int) -> int: return {name}", namespace)
    made = tool(namespace["take"])
    assert list(properties(made)) == [name]
    assert made(**made.validate(f'{{"{name}": 1}}')) == 1


def test_defaults_of_every_kind() -> None:
    @tool
    def take(
        a: int = 1,
        b: list[int] = [1],  # noqa: B006
        c: int = Field(default=3, gt=0),
        d: Annotated[list[int], Field(default_factory=list)] = Field(default_factory=list),  # noqa: B008
        e: int = None,  # type: ignore[assignment]  # noqa: RUF013
        f: str = Field(alias="from", default="x"),
    ) -> None: ...

    assert take.validate("") == {"a": 1, "b": [1], "c": 3, "d": [], "e": None, "f": "x"}
    assert take.validate("")["b"] is not take.validate("")["b"]
    assert take.validate('{"from": "y", "e": null}')["f"] == "y"
    assert properties(take)["a"]["default"] == 1
    assert "required" not in take.input_schema


def test_default_without_json_form_is_not_shown() -> None:
    sentinel = object()

    @tool
    def take(a: Any = sentinel) -> None: ...

    assert take.validate("{}") == {"a": sentinel}


def test_injected_parameters_are_hidden() -> None:
    @tool
    def one(a: int, where: ToolContext, stock: Injected[dict[str, int]]) -> None: ...

    @tool
    def two(a: int, where: ToolContext | None = None, shop: Injected[Shop] | None = None) -> None: ...

    @tool
    def three(a: int, where: ToolContext[Shop]) -> None: ...

    assert [list(properties(each)) for each in (one, two, three)] == [["a"], ["a"], ["a"]]
    assert [each.deps_types for each in (one, two, three)] == [(), (Shop, type(None)), (Shop,)]


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        (Injected[dict], "dict"), (Injected[dict[str, int]], "dict[str, int]"), (ToolContext[str], "str"),
        (Injected[Mapping[str, int]], "Mapping[str, int]"), (Injected[Answer], "Answer"),
        (Injected[dict | Colour], "dict or Colour"), (Injected[Any], ""), (Injected[object], ""),
        (Injected[dict | None], ""), (Injected[dict] | None, ""), (ToolContext, ""), (ToolContext[Any], ""),
        (Injected[TypeAliasType("Given", dict | None)], ""), (ToolContext[TypeAliasType("Given", Colour)], "Colour"),
        (Injected[Literal["a", None]], ""), (Injected[Literal["a"]], "Literal['a']"),
    ],
)  # fmt: skip
def test_what_a_run_must_be_given_is_told_unless_none_will_do(kind: Any, needed: str) -> None:
    def take(a: int, given: Any) -> None: ...

    take.__annotations__["given"] = kind
    made = tool(take)
    assert (made.needs_deps, Any in made.deps_types) == (needed, False)


def test_what_is_injected_is_said_by_type_and_never_by_name() -> None:
    @tool
    def take(context: str, deps: list[int]) -> None: ...

    assert list(properties(take)) == ["context", "deps"]
    assert take.filled == (("context", str), ("deps", list[int]))


def named_context(a: int, context) -> None: ...  # type: ignore[no-untyped-def]


def named_deps(a: int, deps=None) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "advice"), [(named_context, "context: ToolContext"), (named_deps, r"deps: Injected\[Shop\]")]
)
def test_a_name_that_was_once_injected_must_have_a_type(function: Any, advice: str) -> None:
    with pytest.raises(BadTool, match=advice):
        tool(function)
    with pytest.raises(BadTool, match=advice):
        Tool.from_schema("take", "", {"type": "object", "properties": {"a": {}}, "required": ["a"]}, function)
    name = function.__name__.removeprefix("named_")
    described = {"type": "object", "properties": {"a": {}, name: {}}, "required": ["a", name]}
    assert Tool.from_schema("take", "", described, function).injected == ()


def test_what_other_functions_of_an_agent_are_given_no_tool_asks_a_model_for() -> None:
    def of_a_run(ctx: RunContext[Shop], a: int) -> None: ...

    def of_any_run(a: int, ctx: RunContext[Any] | None = None) -> None: ...

    def of_a_step(step: StepContext[Shop], a: int) -> None: ...

    for function, advice in (
        (of_a_run, r"no tool is given the RunContext .*`ctx: ToolContext\[Shop\]`.*Injected\[Shop\]"),
        (of_any_run, r"no tool is given the RunContext .*`ctx: ToolContext\[Any\]`"),
        (of_a_step, r"no tool is given the StepContext .*`step: ToolContext\[Shop\]`"),
    ):
        with pytest.raises(BadTool, match=advice):
            tool(function)


class Shop:
    def __init__(self) -> None:
        self.stock = 5

    def take(self, count: int) -> int:
        """Takes some."""
        self.stock -= count
        return self.stock

    async def __call__(self, count: int) -> int:
        """Calls the shop."""
        return count


@pytest.mark.anyio
async def test_bound_method_partial_and_callable_instance() -> None:
    shop = Shop()
    bound = tool(shop.take)
    assert (bound.name, bound.description, list(properties(bound))) == ("take", "Takes some.", ["count"])
    assert bound(2) == 3

    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    square = tool(functools.partial(power, exponent=2), name="square")
    assert list(properties(square)) == ["base"]
    assert (await square.call(square.validate('{"base": 3}'))).content == "9"

    called = tool(shop, name="shop")
    assert called.is_async
    assert called.description == "Calls the shop."
    assert (await called.call(called.validate('{"count": 3}'))).content == "3"


def test_the_plain_function_can_still_be_called() -> None:
    @tool(effect="read")
    def add(a: int, b: int = 2) -> int:
        return a + b

    assert add(1) == 3
    assert add(1, b=1) == 2
    assert tool(add) is add


def test_tool_is_immutable() -> None:
    made = tool(Shop().take)
    with pytest.raises(AttributeError):
        made.timeout = 3.0


def generator(a: int) -> Any:
    yield a


async def async_generator(a: int) -> Any:
    yield a


def untyped(a) -> None: ...  # type: ignore[no-untyped-def]


def starred(*items: int) -> None: ...


def keywords(**items: int) -> None: ...


def positional(a: int, /) -> None: ...


def unresolved(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


Json = Union[dict[str, "Json"], list["Json"], int, None]  # noqa: UP007
Ended = TypeAliasType("Ended", "dict[str, Ended] | list[Ended] | int | None")


Here = TypeAliasType("Here", ToolContext[Any])
Lent = TypeAliasType("Lent", Injected[dict[str, int]])


Renamed = TypeAliasType("Renamed", Lent)
Perhaps = TypeAliasType("Perhaps", Lent | None)


def by_other_names(
    a: int, where: Here, lent: Lent, named: Renamed, perhaps: Lent | None = None, other: Perhaps | None = None
) -> None: ...


@functools.singledispatch
def by_type(a: int) -> None: ...


def endless(a: Json) -> None: ...


def ended(a: Ended) -> None: ...


def final(a: Final[int]) -> None: ...  # type: ignore[valid-type]


def opaque(a: Shop) -> None: ...


class Untold(enum.Enum):
    THING = object()


class Bytes(enum.Enum):
    ODD = b"\xff"


def untold(a: Untold) -> None: ...


def odd(a: Bytes | None = None) -> None: ...


def called_back(n: int, it: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generator, "return a list"),
        (async_generator, "return a list"),
        (untyped, "'a' has no type"),
        (starred, r"\*items"),
        (keywords, r"\*\*items"),
        (positional, "positional-only"),
        (by_type, "is a functools.singledispatch, .* make a tool of a function that calls it"),
        (unresolved, "'a' cannot be resolved"),
        (endless, """the type of 'a' is made of 'Json', and that of itself; write `Json = TypeAliasType"""),
        (final, "the type of 'a' cannot be filled from JSON: .*Final"),
        (opaque, r"the type of 'a' cannot be filled from JSON: .* for <class '.*Shop'>\. A model writes .*Injected"),
        (called_back, "the type of 'it' has no JSON Schema"),
        (untold, "the type of 'a' has no JSON Schema: .*object"),
        (odd, "the type of 'a' has no JSON Schema: .*0xff"),
        (Shop, "is a class"),
        (Shop.take, "bound method"),
        (len, "'obj'"),
        (3, "cannot be called"),
        (lambda a: a, "has no type"),
        (lambda: 1, "cannot be the name of a tool"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_advice(function: Any, words: str) -> None:
    with pytest.raises(BadTool, match=words):
        tool(function)


def test_what_is_injected_may_have_a_name_of_its_own() -> None:
    """`type Lent = Injected[…]` was a parameter for the model to fill: it was asked for the dependencies."""
    made = tool(by_other_names)
    assert list(properties(made)) == ["a"]
    filled = ("where", "lent", "named", "perhaps", "other")
    assert made.injected == tuple([(name, "context" if name == "where" else "deps") for name in filled])


def test_a_type_that_is_made_of_itself_is_read_to_its_end() -> None:
    """The third level of a plain union called `Json` was taken for a type of this package's that has the name."""
    value = {"a": [1, {"b": [None, {"c": {}}]}]}
    assert tool(ended).validate(json.dumps({"a": value})) == {"a": value}


def test_refusal_names_file_and_line() -> None:
    line = untyped.__code__.co_firstlineno
    with pytest.raises(BadTool, match=rf"untyped \(.*test_function\.py:{line}\)"):
        tool(untyped)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effect": "reed"}, "'read', 'idempotent', 'write'"),
        ({"retries": 1}, 'effect="read" or effect="idempotent"'),
        ({"retries": -1, "effect": "read"}, "retries"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": "1"}, "seconds above 0"),
        ({"max_output": 10}, "from 100"),
        ({"alone": "yes"}, "True or False"),
        ({"parallel": 1}, "True or False"),
        ({"thread": None}, "True or False"),
        ({"errors": "yes"}, "says_error"),
        ({"resource": ""}, "resource"),
        ({"needs_approval": "yes"}, "needs_approval"),
        ({"name": "a b"}, "letters, digits"),
        ({"name": "x" * 65}, "letters, digits"),
        ({"time_out": 3}, "did you mean 'timeout'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadTool, match=words):
        tool(**options)(Shop().take)


def test_result_types_without_a_schema_do_no_harm() -> None:
    def one(a: int) -> ToolResult:
        return ToolResult(a)

    def two(a: int) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return a

    def three(a: int) -> Shop:
        return Shop()

    assert [tool(each).output_schema for each in (one, two, three)] == [None, None, None]


def both(a: int, b: int = 2) -> int:
    return a + b


class Pair(BaseModel):
    a: int
    b: int = 5


class TestFromSchema:
    SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}

    def test_from_json_schema(self) -> None:
        made = Tool.from_schema("add", "Adds.", self.SCHEMA, both, effect="read")
        assert made.input_schema is self.SCHEMA
        assert made.validate('{"a": 1}') == {"a": 1, "b": 2}
        assert made.effect == "read"

    def test_from_json_schema_converts_to_the_types_of_the_function(self) -> None:
        def take(amount: Decimal, colour: Colour) -> None: ...

        schema = {"type": "object", "properties": {"amount": {}, "colour": {}}, "required": ["amount", "colour"]}
        made = Tool.from_schema("take", "", schema, take)
        assert made.validate('{"amount": "1.10", "colour": "red"}') == {"amount": Decimal("1.10"), "colour": Colour.RED}

    def test_from_json_schema_untyped_function_and_defaults_of_the_schema(self) -> None:
        def take(a, where: ToolContext):  # type: ignore[no-untyped-def]
            return a

        schema = {"type": "object", "properties": {"a": {"type": "array", "default": [1]}}}
        made = Tool.from_schema("take", "", schema, take)
        assert made.validate("") == {"a": [1]}
        made.validate("")["a"].append(2)
        assert made.validate("") == {"a": [1]}

    def test_a_hidden_parameter_cannot_be_set(self) -> None:
        def take(a: int, admin: bool = False) -> None: ...

        made = Tool.from_schema("take", "", {"type": "object", "properties": {"a": {}}, "required": ["a"]}, take)
        with pytest.raises(Exception, match="no argument 'admin'"):
            made.validate('{"a": 1, "admin": true}')

    def test_what_treadle_fills_in_is_no_argument_of_the_schema(self) -> None:
        def take(run: ToolContext, **rest: Any) -> None: ...

        schema = {"type": "object", "properties": {"run": {"type": "string"}}}
        with pytest.raises(BadTool, match=r"treadle fills in 'run'.* would be lost"):
            Tool.from_schema("take", "", schema, take)

    def test_from_pydantic_model_by_fields_or_whole(self) -> None:
        def whole(pair: Pair) -> int:
            return pair.a + pair.b

        by_fields = Tool.from_schema("add", "", Pair, both)
        taken_whole = Tool.from_schema("add", "", Pair, whole)
        assert by_fields.validate('{"a": 1}') == {"a": 1, "b": 5}
        assert taken_whole.validate('{"a": 1}') == {"pair": Pair(a=1, b=5)}
        assert by_fields.input_schema["required"] == ["a"]
        assert by_fields.input_schema["additionalProperties"] is False

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ({"type": "string"}, '"type": "object"'),
            ({"type": "object", "properties": 3}, "not a valid JSON Schema"),
            ({"type": "object", "properties": {"a": {"type": "intger"}}}, "not a valid JSON Schema"),
            ({"type": "object", "properties": {"a": {"$ref": "http://localhost:9/x"}}}, "not a valid JSON Schema"),
            ({"type": "object", "properties": {"a": {}, "z": {}}, "required": ["a"]}, "has 'z'"),
            ({"type": "object", "properties": {"a": {}}}, "needs 'a'"),
            (int, "named arguments"),
            (Point, "does not take x"),
        ],
    )
    def test_schema_and_function_must_fit(self, schema: Any, words: str) -> None:
        with pytest.raises(BadTool, match=words):
            Tool.from_schema("add", "", schema, both)
