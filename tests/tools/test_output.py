"""What tools return becomes text, JSON or parts that a model can be shown."""

import dataclasses
import datetime
import enum
import json
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from treadle.kernel.messages import File, Image, Text
from treadle.tools import ToolError, ToolResult, encode, encode_error
from treadle.tools.output import cut


class Model(BaseModel):
    a: Decimal


@dataclasses.dataclass
class Data:
    a: int


class Record(msgspec.Struct):
    a: int


@dataclasses.dataclass
class Measured:
    a: float


class Reading(msgspec.Struct):
    a: float


class Weighed(BaseModel):
    a: float


class Constant(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    a: float


class Word(str, enum.Enum):  # noqa: UP042
    A = "a"


class Number(enum.Enum):
    ONE = 1


class Odd:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (Decimal("1.10"), '"1.10"'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        ((1, 2), "[1,2]"),
        (Model(a=Decimal("1.10")), '{"a":"1.10"}'),
        ([Model(a=Decimal(1))], '[{"a":"1"}]'),
        (Data(1), '{"a":1}'),
        (Record(1), '{"a":1}'),
        ([Record(1)], '[{"a":1}]'),
        (Word.A, "a"),
        (Number.ONE, "1"),
        (datetime.date(2024, 1, 31), '"2024-01-31"'),
        (datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC), '"2024-01-31T00:00:00Z"'),
        ({"a": float("nan"), "b": float("inf")}, '{"a":"NaN","b":"Infinity"}'),
        ({1: "a"}, '{"1":"a"}'),
        (range(3), "[0,1,2]"),
        (deque([1]), "[1]"),
        ({"a": 1}.values(), "[1]"),
        ("\ud800x", "?x"),
        ({"\ud800": ["\ud800"]}, '{"?":["?"]}'),
        ("中 é", "中 é"),
    ],
)
def test_results_as_text(value: Any, text: str) -> None:
    output = encode(value, 1_000)
    assert output.content == text
    assert not output.is_error


def circular() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def deep() -> list[Any]:
    items: list[Any] = []
    for _ in range(5_000):
        items = [items]
    return items


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Odd(), "Odd"),
        ({"a": Odd()}, "dict"),
        (b"\xff\x00", "bytes"),
        (circular(), "list"),
        (deep(), "list"),
        (lambda: 1, "function"),
        ((item for item in [1]), "generator"),
        (iter([1]), "list_iterator"),
        ({"a": Image(data=b"x")}, "dict"),
        (ToolResult("fine", for_app=Odd()), "ToolResult"),
        (ValueError("x"), "ValueError"),
    ],
)
def test_what_is_not_json_is_an_error_that_names_the_type(value: Any, named: str) -> None:
    output = encode(value, 10_000)
    assert output.is_error
    assert isinstance(output.content, str)
    told = json.loads(output.content)
    assert told["error"] is True
    assert named in told["message"]
    assert "the tool ran" in told["message"]


def test_images_and_files_are_parts() -> None:
    image, file = Image(data=b"x"), File(url="https://example.com/a.pdf")
    assert encode(image, 100).content == (image,)
    assert encode([image, "seen", Text("end")], 100).text == "seen\nend"
    assert encode([image, "seen", {"a": 1}, file, Text("end")], 100).content == (
        image,
        Text("seen"),
        Text('{"a":1}'),
        file,
        Text("end"),
    )


def test_text_between_images_is_cut_together() -> None:
    output = encode([Text("a" * 90), Image(data=b"x"), Text("b" * 200)], 150)
    assert isinstance(output.content, tuple)
    assert sum(len(part.text) for part in output.content if isinstance(part, Text)) <= 150
    assert any(isinstance(part, Image) for part in output.content)


def test_the_application_gets_its_own_value() -> None:
    output = encode(ToolResult("3 rows", for_app={"rows": [Data(1)], "at": datetime.date(2024, 1, 31)}), 100)
    assert (output.content, output.app, output.is_error) == ("3 rows", {"rows": [{"a": 1}], "at": "2024-01-31"}, False)
    assert json.loads(json.dumps(output.app)) == output.app


@pytest.mark.parametrize(("value", "kept"), [(float("nan"), "NaN"), (float("inf"), "Infinity"), (-1e999, "-Infinity")])
def test_what_is_no_number_is_the_same_for_the_application_as_for_the_model(value: float, kept: str) -> None:
    """Regression: the application was given a NaN, which the journal gave back as None when the run was read."""
    models = Weighed(a=value), [Constant(a=value)], {"a": Constant(a=value)}
    for told in (value, [value], {"a": [1.5, value]}, Reading(value), Measured(value), *models):
        output = encode(ToolResult(told, for_app=told), 1_000)
        shown = output.content if isinstance(told, float) else json.loads(str(output.content))
        assert kept in str(output.app)
        assert output.app == (json.loads(str(shown)) if isinstance(told, float) else shown)
        assert msgspec.json.decode(msgspec.json.encode(output.app)) == output.app


@pytest.mark.parametrize("shown", ["it broke", {"message": "it broke"}])
def test_a_result_may_be_an_error(shown: Any) -> None:
    output = encode(ToolResult(shown, is_error=True), 1_000)
    assert output.is_error
    assert output.content == '{"error":true,"message":"it broke"}'


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError(), "ValueError"),
        (Unprintable(), "Unprintable: (its message could not be shown)"),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ValueError: a; KeyError: 'b'"),
        (ValueError("\ud800"), "ValueError: ?"),
    ],
)
def test_exceptions_become_messages(error: Exception, message: str) -> None:
    output = encode_error(error)
    assert isinstance(output.content, str)
    told = json.loads(output.content)
    assert list(told) == ["error", "message"]
    assert message in told["message"]
    assert "Traceback" not in output.content


def test_hints_stand_beside_the_message() -> None:
    error = ToolError(
        "no source 'x'", given="x", available=["a", "b"], nearest=None, odd=Odd(), message="no", error=False
    )
    output = encode_error(error)
    assert isinstance(output.content, str)
    told = json.loads(output.content)
    assert told["error"] is True
    assert told["message"] == "no source 'x'"
    assert told["available"] == ["a", "b"]
    assert "nearest" not in told
    assert told["odd"] == "(Odd)"


def test_a_long_error_stays_json() -> None:
    output = encode_error(ToolError("x" * 1_000, available=["y" * 1_000]), 300)
    assert isinstance(output.content, str)
    assert len(output.content) <= 300
    assert json.loads(output.content)["error"] is True


@given(text=st.text(max_size=400), limit=st.integers(0, 300))
def test_cut_is_never_longer_than_the_limit_and_keeps_both_ends(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    elif "characters left out" in short and "characters left out" not in text:
        head, _, rest = short.partition("\n[... ")
        count, _, tail = rest.partition(" characters left out ...]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + len(tail) + int(count) == len(text)


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner)), limit=st.integers(100, 300))
def test_output_is_never_longer_than_max_output(value: Any, limit: int) -> None:
    content = encode(value, limit).content
    assert isinstance(content, str)
    assert len(content) <= limit


SURROGATE = "caf\udce9"


class Named(BaseModel):
    a: Any


@pytest.mark.parametrize(
    "value",
    [
        SURROGATE,
        [SURROGATE],
        {SURROGATE: 1},
        Path(SURROGATE),
        [Path(SURROGATE)],
        {"a": {SURROGATE: Path(SURROGATE)}},
        Data(SURROGATE),  # type: ignore[arg-type]
        Data({SURROGATE: SURROGATE}),  # type: ignore[arg-type]
        Named(a={SURROGATE: [SURROGATE]}),
        Record({SURROGATE: SURROGATE}),  # type: ignore[arg-type]
        Text(SURROGATE),
        File(data=b"x", name=SURROGATE, media_type=SURROGATE),
        [Image(url=f"https://example.com/{SURROGATE}", media_type=SURROGATE), Text(SURROGATE), SURROGATE],
    ],
)
def test_text_is_storable_wherever_it_comes_out(value: Any) -> None:
    for output in (
        encode(value, 1_000),
        encode(ToolResult(value), 1_000),
        encode(ToolResult(value, is_error=True), 1_000),
    ):
        assert output.is_error == (isinstance(output.value, ToolResult) and output.value.is_error)
        assert "caf?" in str(output.content)
        msgspec.json.encode(output.content)
    if not isinstance(value, Text | File) and not isinstance(value, list):
        app = encode(ToolResult("x", for_app=value), 1_000).app
        assert "caf?" in str(app)
        msgspec.json.encode(app)
    error = encode_error(ToolError(SURROGATE, given=SURROGATE, **{SURROGATE: value}))
    assert "caf?" in str(error.content)
    msgspec.json.encode(error.content)
