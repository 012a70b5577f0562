"""What the model wrote is checked, and every fault is told in words and hints that it can act on."""

import datetime
import enum
import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, WithJsonSchema, field_validator

from treadle.tools import InvalidArguments, Tool, ToolError, encode_error, external_tool, tool


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Filter(BaseModel):
    column: Literal["company", "period"]
    value: int | str


class Picky(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def check(cls, value: str) -> str:
        if value == "boom":
            raise KeyError("boom")
        if value == "bad":
            raise ValueError("bad names are not taken")
        return value


def query(
    source: Level, filters: list[Filter], limit: int = Field(default=10, gt=0), picky: Picky | None = None
) -> None: ...


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "source": {"enum": ["low", "high"]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}},
        "limit": {"type": "integer", "exclusiveMinimum": 0},
        "picky": {"type": "object"},
    },
    "required": ["source", "filters"],
    "$defs": {
        "filter": {
            "type": "object",
            "properties": {"column": {"enum": ["company", "period"]}, "value": {"type": ["integer", "string"]}},
            "required": ["column", "value"],
            "additionalProperties": False,
        }
    },
}


def plain_query(source, filters, limit=10, picky=None): ...  # type: ignore[no-untyped-def]


BY_TYPES = tool(query)
BY_SCHEMA = Tool.from_schema("query", "", SCHEMA, plain_query)
OUTSIDE = external_tool("query", "", SCHEMA)
EVERY = pytest.mark.parametrize("made", [BY_TYPES, BY_SCHEMA], ids=["types", "schema"])


def fault(made: Tool, text: str) -> dict[str, Any]:
    with pytest.raises(InvalidArguments) as caught:
        made.validate(text)
    output = encode_error(caught.value)
    assert output.is_error
    assert isinstance(output.content, str)
    told: dict[str, Any] = json.loads(output.content)
    assert told["error"] is True
    assert told["message"].startswith("query: ")
    return told


@EVERY
def test_a_missing_argument_is_named(made: Tool) -> None:
    told = fault(made, '{"source": "low"}')
    assert told["argument"] == "filters"
    assert "'filters' is missing" in told["message"]


@EVERY
def test_an_unknown_argument_names_those_there_are(made: Tool) -> None:
    told = fault(made, '{"source": "low", "filters": [], "limits": 3}')
    assert told["argument"] == told["given"] == "limits"
    assert told["nearest"] == "limit"
    assert told["available"] == ["source", "filters", "limit", "picky"]


@EVERY
def test_a_value_that_is_not_in_the_list(made: Tool) -> None:
    told = fault(made, '{"source": "hihg", "filters": []}')
    assert (told["argument"], told["given"], told["nearest"]) == ("source", "hihg", "high")
    assert told["available"] == ["low", "high"]


def pick(of: Literal[1, 2] = 1, sure: Literal[True] = True, word: Literal[None, "no"] = None) -> None: ...


@pytest.mark.parametrize(
    ("given", "meant", "words"),
    [
        ({"of": "1"}, 1, "cannot be '1'; it is one of 1, 2; did you mean 1?"),
        ({"sure": "True"}, True, "cannot be 'True'; it is one of true; did you mean true?"),
        ({"word": "null"}, None, "cannot be 'null'; it is one of null, 'no'; did you mean null?"),
        ({"of": None}, None, "cannot be null; it is one of 1, 2"),
    ],
)
def test_the_value_that_is_proposed_is_not_the_one_that_was_given(given: Any, meant: Any, words: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        tool(pick).validate(json.dumps(given))
    assert caught.value.message.endswith(words)
    assert caught.value.hints.get("nearest") == meant


class Rate(enum.Enum):
    LOW = Decimal("0.07")
    HIGH = Decimal("0.19")


class Quarter(datetime.date, enum.Enum):
    FIRST = (2024, 1, 1)
    SECOND = (2024, 4, 1)


class Planet(enum.Enum):
    EARTH = (5.97, 6.4)
    MARS = (0.64, 3.4)


class Mixed(enum.Enum):
    RAW = b"raw"
    WORD = "word"
    LIST = (1, 2)


@pytest.mark.parametrize(
    "kind",
    [Rate, Quarter, Planet, Mixed, Literal[Rate.LOW, "none"], Literal[Planet.MARS], list[Rate], Rate | bool | None],
)
def test_what_is_listed_of_an_enum_is_read(kind: Any) -> None:
    """Of a value that is none of JSON's the member alone was taken: "cannot be '0.07'; it is one of '0.07', …"."""

    def take(one: Any) -> None: ...

    take.__annotations__["one"] = kind
    made = tool(take)
    members = [Rate.LOW, Quarter.FIRST, Planet.MARS, Mixed.RAW, Mixed.WORD, Mixed.LIST]
    for member in members:
        given: Any = [member] if kind == list[Rate] else member
        try:
            written = TypeAdapter(kind).dump_json(TypeAdapter(kind).validate_python(given)).decode()
        except ValidationError:
            continue
        assert made.validate(f'{{"one": {written}}}') == {"one": given}
        listed = json.dumps(made.input_schema)
        assert json.dumps(json.loads(written)).strip("[]") in listed
    with pytest.raises(InvalidArguments):
        made.validate('{"one": "0.21"}')


class Share(enum.Enum):
    WHOLE = 1.0
    TWO = 2


class Scale(enum.Enum):
    WHOLE = 1
    SAME = "1"
    YES = True


@pytest.mark.parametrize(
    ("kind", "given", "member"),
    [
        (Literal[Share.WHOLE, "none"], "1", Share.WHOLE),
        (Literal[Share.WHOLE, Share.TWO], "2.0", Share.TWO),
        (Literal[Share.WHOLE, 1], "1", 1),
        (Literal[Share.WHOLE, 1], "1.0", Share.WHOLE),
        (Literal[Scale.WHOLE, Scale.SAME], "1.0", Scale.WHOLE),
        (Literal[Scale.WHOLE, Scale.SAME], '"1"', Scale.SAME),
        (Literal[Scale.WHOLE], "true", None),
        (Literal[Share.WHOLE], '"1"', None),
    ],
)
def test_a_number_is_the_same_however_it_is_written(kind: Any, given: str, member: Any) -> None:
    """A member of 1.0 was not found by 1, as models that have one kind of number write it."""

    def take(one: Any) -> None: ...

    take.__annotations__["one"] = kind
    made = tool(take)
    if member is None:
        with pytest.raises(InvalidArguments):
            made.validate(f'{{"one": {given}}}')
    else:
        found = made.validate(f'{{"one": {given}}}')["one"]
        assert (type(found), found) == (type(member), member)


class Animal(enum.Enum):
    CAT = "cat"
    DOG = "dog"


class Cat(BaseModel):
    kind: Literal[Animal.CAT]
    lives: int


class Dog(BaseModel):
    kind: Literal[Animal.DOG]
    name: str


class Low(BaseModel):
    kind: Literal[Rate.LOW]


class High(BaseModel):
    kind: Literal[Rate.HIGH]


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [
        (Cat | Dog, {"kind": "cat", "lives": 9}, Cat(kind=Animal.CAT, lives=9)),
        (Cat | Dog, {"kind": "dog", "name": "Rex"}, Dog(kind=Animal.DOG, name="Rex")),
        (Low | High, {"kind": "0.19"}, High(kind=Rate.HIGH)),
    ],
)
def test_what_a_member_of_an_enum_tells_apart_is_read(kind: Any, given: Any, meant: Any) -> None:
    """No call fitted: "Input tag 'cat' found using 'kind' does not match any of the expected tags: <Animal.CAT…"."""

    def take(one: Any) -> None: ...

    take.__annotations__["one"] = Annotated[kind, Field(discriminator="kind")]
    made = tool(take)
    assert made.validate(json.dumps({"one": given})) == {"one": meant}
    with pytest.raises(InvalidArguments, match="does not match any of the expected tags: '"):
        made.validate('{"one": {"kind": "cow"}}')


def test_what_may_be_an_enum_or_something_else_is_told_in_json() -> None:
    """It was told as Python writes it: "should be Decimal('0.07') or Decimal('0.19')"."""

    def take(one: Rate | int, of: Literal[Rate.LOW, "{none}"] | bool = False) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        tool(take).validate('{"one": "0.21", "of": "x"}')
    assert "'one' should be '0.07' or '0.19', or should be a valid integer" in caught.value.message
    assert "'of' should be '0.07' or '{none}', or should be a valid boolean" in caught.value.message


def names(
    by_number: dict[int, str] | None = None,
    by_rate: dict[Rate, int] | None = None,
    by_day: dict[datetime.date, list[int]] | None = None,
) -> None: ...


@pytest.mark.parametrize(
    ("given", "words", "hints"),
    [
        ({"by_number": {"abc": "x"}}, "the name 'abc' in 'by_number' should be a valid integer", {"given": "abc"}),
        (
            {"by_rate": {"0.7": 1}},
            "the name '0.7' in 'by_rate' is none of '0.07', '0.19'; did you mean '0.07'?",
            {"available": ["0.07", "0.19"], "nearest": "0.07"},
        ),
        ({"by_day": {"2024-13-01": [1]}}, "the name '2024-13-01' in 'by_day' should be a valid date", {}),
        ({"by_day": {"2024-01-01": ["x"]}}, "the argument 'by_day.2024-01-01[0]' should be a valid integer", {}),
    ],
)
def test_a_name_that_is_wrong_is_not_told_as_its_value(given: Any, words: str, hints: dict[str, Any]) -> None:
    """It was: "the argument 'by_number.abc' should be a valid integer; given was 'x'"."""
    with pytest.raises(InvalidArguments) as caught:
        tool(names).validate(json.dumps(given))
    assert words in caught.value.message
    assert caught.value.hints | hints == caught.value.hints
    assert tool(names).validate('{"by_rate": {"0.07": 1}}')["by_rate"] == {Rate.LOW: 1}


def test_each_name_that_is_wrong_is_told() -> None:
    with pytest.raises(InvalidArguments) as caught:
        tool(names).validate('{"by_number": {"abc": "x", "7": 7, "x[key]": "y", "[key]": "z"}}')
    for told in (
        "'abc' in 'by_number'",
        "'x[key]' in 'by_number'",
        "'[key]' in 'by_number'",
        "'by_number.7' should be",
    ):
        assert told in caught.value.message


@EVERY
def test_a_nested_fault_is_told_with_its_path(made: Tool) -> None:
    told = fault(
        made, '{"source": "low", "filters": [{"column": "company", "value": 1}, {"column": "compny", "value": 2}]}'
    )
    assert told["argument"] == "filters[1].column"
    assert told["available"] == ["company", "period"]
    assert told["nearest"] == "company"


@EVERY
def test_a_nested_missing_one(made: Tool) -> None:
    assert fault(made, '{"source": "low", "filters": [{"column": "company"}]}')["argument"] == "filters[0].value"


@EVERY
def test_a_value_of_the_wrong_type_or_range(made: Tool) -> None:
    told = fault(made, '{"source": "low", "filters": [], "limit": 0}')
    assert (told["argument"], told["given"]) == ("limit", 0)
    assert "greater than 0" in told["message"] or "minimum of 0" in told["message"]


@EVERY
def test_all_faults_are_told_together(made: Tool) -> None:
    told = fault(made, '{"source": "x", "limit": "many", "colour": 1}')
    assert {each["argument"] for each in told["errors"]} == {"source", "limit", "colour", "filters"}


def test_a_union_is_told_once() -> None:
    told = fault(BY_TYPES, '{"source": "low", "filters": [{"column": "company", "value": [1]}]}')
    assert "errors" not in told
    assert told["argument"] == "filters[0].value"
    assert told["given"] == [1]


def test_a_validator_of_the_users() -> None:
    start = '{"source": "low", "filters": [], "picky": {"name": '
    assert "bad names are not taken" in fault(BY_TYPES, start + '"bad"}}')["message"]
    assert "KeyError: 'boom'" in fault(BY_TYPES, start + '"boom"}}')["message"]


@pytest.mark.parametrize("made", [BY_TYPES, BY_SCHEMA, OUTSIDE], ids=["types", "schema", "outside"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"source": "low", "filters": [', "EOF while parsing a list at line 1 column 30"),
        ("{'source': 'low'}", "line 1 column 2"),
        ('{"source": "low",}', "trailing comma"),
        ('{"source": "low", "source": "high"}', 'duplicate key "source"'),
        ('{"limit": NaN}', "line 1 column"),
        ('{"limit": -Infinity}', "line 1 column"),
        ("[" * 5_000, "recursion limit"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "recursion limit"),
        ('{"limit": ' + "9" * 10_000 + "}", "number out of range"),
        ('{"source": "\\ud800"}', "hex escape"),
        ('{"source": "\ud800"}', "lone surrogate"),
        ("[1]", "an array"),
        ('"low"', "a string"),
        ("null", "null"),
        ("true", "a boolean"),
        ("12", "a number"),
        ("low", "expected value"),
    ],
)
def test_what_is_not_a_json_object(made: Tool, text: str, words: str) -> None:
    told = fault(made, text)
    assert words in told["message"]
    assert json.loads(told["expected"]) == {"source": "low", "filters": []}
    assert len(told["message"]) < 500
    assert len(told["given"]) < 300


def test_malformed_json_says_where_it_broke() -> None:
    told = fault(BY_TYPES, '{"source": "low",\n "filters": [1 2]}')
    assert "line 2 column" in told["message"]
    assert told["given"].endswith('"filters": [1 2')


@pytest.mark.parametrize("text", ["", "  ", "{}", "\n"])
def test_no_arguments(text: str) -> None:
    assert external_tool("done", "Ends.").validate(text) == {}


def test_huge_values_are_not_repeated() -> None:
    told = fault(BY_TYPES, json.dumps({"source": "x" * 100_000, "filters": [], "y" * 100_000: 1}))
    assert len(json.dumps(told)) < 5_000


def test_infinity_by_the_back_door() -> None:
    @tool
    def query(a: float) -> None: ...

    assert fault(query, '{"a": 1e999}')["argument"] == "a"


def test_json_schema_may_be_of_an_older_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    }
    assert external_tool("old", "", schema).validate('{"a": 1}') == {"a": 1}


class Done(BaseModel):
    when: datetime.date = Field(default=datetime.date(2024, 1, 31))
    level: Level


class TestExternal:
    def test_arguments_of_a_model_come_as_json_with_defaults(self) -> None:
        made = external_tool("done", "Ends the run.", Done, wait=True)
        assert (made.external, made.wait, made.name) == (True, True, "done")
        assert made.validate('{"level": "low"}') == {"when": "2024-01-31", "level": "low"}
        with pytest.raises(ToolError, match="no argument 'levle'; did you mean 'level'"):
            made.validate('{"levle": "low"}')

    def test_arguments_of_a_schema_come_as_they_are(self) -> None:
        made = external_tool("done", "Ends the run.", {"type": "object", "properties": {"a": {"type": "number"}}})
        assert made.validate('{"a": 1.5, "b": [1]}') == {"a": 1.5, "b": [1]}

    def test_it_has_no_function(self) -> None:
        with pytest.raises(TypeError, match="external tool"):
            external_tool("done", "Ends the run.")()

    @pytest.mark.parametrize("input", [int, list[int], {"type": "array"}, {"properties": {}}])
    def test_input_must_be_an_object(self, input: Any) -> None:
        with pytest.raises(TypeError, match="named arguments"):
            external_tool("done", "", input)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["low", "high"]) | JSON,
        "filters": st.lists(st.fixed_dictionaries({}, optional={"column": st.just("company") | JSON, "value": JSON}))
        | JSON,
        "limit": JSON,
        "picky": st.fixed_dictionaries({"name": st.sampled_from(["a", "bad", "boom"])}) | JSON,
        "other": JSON,
    },
)
TEXTS = (
    st.text()
    | JSON.map(json.dumps)
    | NEARLY.map(json.dumps)
    | st.tuples(NEARLY.map(json.dumps), st.integers(0, 60)).map(lambda both: both[0][: both[1]])
)


@pytest.mark.parametrize("made", [BY_TYPES, BY_SCHEMA, OUTSIDE], ids=["types", "schema", "outside"])
@given(text=TEXTS)
def test_validate_raises_invalid_arguments_and_nothing_else(made: Tool, text: str) -> None:
    try:
        value = made.validate(text)
    except InvalidArguments as error:
        output = encode_error(error)
        assert isinstance(output.content, str)
        assert json.loads(output.content)["message"]
    else:
        assert isinstance(value, dict)


@given(source=st.sampled_from(Level), limit=st.integers(1, 2**63), values=st.lists(st.integers() | st.text()))
def test_what_fits_the_schema_arrives_whole(source: Level, limit: int, values: list[int | str]) -> None:
    filters = [{"column": "period", "value": value} for value in values]
    text = json.dumps({"source": source.value, "limit": limit, "filters": filters})
    by_types = BY_TYPES.validate(text)
    assert by_types["source"] is source
    assert [each.value for each in by_types["filters"]] == values
    assert BY_SCHEMA.validate(text) == {"source": source.value, "limit": limit, "filters": filters}


class Flag(enum.IntEnum):
    ON = 1


@pytest.mark.parametrize("kind", [int, float, int | str, int | None, list[int], dict[str, float], Filter])
@pytest.mark.parametrize("word", ["true", "false"])
def test_true_is_no_number(kind: Any, word: str) -> None:
    """One was read of it, of which the schema says nothing: of `limit=true` a limit of 1."""

    def take(one: Any) -> None: ...

    take.__annotations__["one"] = kind
    given = {
        list[int]: f"[2, {word}]",
        dict[str, float]: f'{{"a": {word}}}',
        Filter: f'{{"column": "period", "value": {word}}}',
    }.get(kind, word)
    with pytest.raises(InvalidArguments, match=f"should be a number, not true or false; given was '{word}'"):
        tool(take).validate(f'{{"one": {given}}}')


@pytest.mark.parametrize("kind", [Literal[1], Literal["a", 0, 1], Flag, Flag | None])
def test_true_is_no_choice_among_numbers(kind: Any) -> None:
    """Python takes it for the number 1."""

    def take(one: Any) -> None: ...

    take.__annotations__["one"] = kind
    source = {"type": "object", "properties": {"one": {"enum": [0, 1]}}, "required": ["one"]}
    for taking in (tool(take), Tool.from_schema("take", "", source, take)):
        assert taking.validate('{"one": 1}') == {"one": 1}
        with pytest.raises(InvalidArguments, match="true"):
            taking.validate('{"one": true}')


@pytest.mark.parametrize(
    "kind",
    [bool, int | bool, Literal[1, True], Literal[1] | bool, Any, Annotated[int, WithJsonSchema({"type": "boolean"})]],
)
def test_true_is_what_it_says_where_that_is_taken(kind: Any) -> None:
    def take(one: Any) -> None: ...

    take.__annotations__["one"] = kind
    assert tool(take).validate('{"one": true}') == {"one": 1}
    by_schema = Tool.from_schema(
        "take", "", {"type": "object", "properties": {"one": {"type": "boolean"}}, "required": ["one"]}, take
    )
    assert by_schema.validate('{"one": true}') == {"one": 1}
