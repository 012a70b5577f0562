"""Reads a `sources.yaml`, of which a Catalog is made.

Works on YAML's node tree rather than on plain data, because an error must name the line. Its neighbour `catalog` holds
what comes out.
"""

from collections.abc import Callable
from collections.abc import Mapping as Names
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, get_args

from yaml import MappingNode, MarkedYAMLError, SafeLoader, ScalarNode, SequenceNode, YAMLError, compose
from yaml.nodes import Node

from treadle.analyst.declared.errors import AnalystError, place_of
from treadle.analyst.declared.expression_text import parse_expression
from treadle.analyst.declared.filters import Ends, Filter
from treadle.analyst.declared.formats import parse_format
from treadle.analyst.declared.hierarchy import Hierarchy
from treadle.analyst.declared.source import (
    AGGREGATIONS,
    KEY_TYPES,
    KINDS,
    UNKNOWN,
    Conversion,
    Dimension,
    Mapping,
    Measure,
    Source,
    TextFormat,
    Tolerance,
    share_in,
)
from treadle.small_files import small_text
from treadle.tools.errors import nearest

T = TypeVar("T")
Reader = Callable[["Field"], Any]


class Field:
    """A node of the file with the path of names that leads to it."""

    def __init__(self, file: Path, node: Node, path: str, line: int | None = None) -> None:
        self.file, self.node, self.path = file, node, path
        self.line = node.start_mark.line + 1 if line is None else line

    def error(self, message: str, **hints: object) -> AnalystError:
        """Returns an error that names file, line and field."""
        place = f"{self.file}, line {self.line}"
        return AnalystError(
            f"{place}: {self.path or 'the file'}: {message}",
            file=str(self.file),
            line=self.line,
            field=self.path,
            **hints,
        )

    def entries(self) -> "dict[str, Field]":
        """The fields of a mapping, by name."""
        if not isinstance(self.node, MappingNode):
            raise self.error("must be a mapping of names to values")
        found: dict[str, Field] = {}
        for key, value in self.node.value:
            name = str(key.value).strip()
            field = Field(self.file, key, f"{self.path}.{name}".lstrip("."))
            if not isinstance(key, ScalarNode) or not name:
                raise field.error("a name must be a plain text")
            if name in found:
                raise field.error("stands here twice")
            found[name] = Field(self.file, value, field.path, field.line)
        return found

    def items(self) -> "list[Field]":
        """The items of a list; a single value counts as a list of one."""
        nodes = self.node.value if isinstance(self.node, SequenceNode) else [self.node]
        return [Field(self.file, node, f"{self.path}[{at}]") for at, node in enumerate(nodes)]

    def text(self) -> str:
        """The text of a scalar, as it is written (so that 0100 stays 0100)."""
        if not isinstance(self.node, ScalarNode):
            raise self.error("must be a single value")
        return str(self.node.value)

    def texts(self) -> tuple[str, ...]:
        """The texts of a list of scalars."""
        return tuple(item.text() for item in self.items())

    def known(self, readers: Names[str, Reader], required: tuple[str, ...] = ()) -> dict[str, Any]:
        """Reads a mapping whose names are those of `readers`, and no others."""
        values = {}
        entries = self.entries()
        for name, field in entries.items():
            if name not in readers:
                near = nearest(name, readers)
                if name.isdecimal() and is_null(field):
                    raise field.error(f"a number has a decimal point here, not a comma: such as 0.{name}", given=name)
                advice = f"did you mean {near!r}?" if near else f"there are: {', '.join(sorted(readers))}"
                raise field.error(f"is not known here; {advice}", given=name, nearest=near, available=sorted(readers))
            values[name] = readers[name](field)
        for name in required:
            if name not in entries:
                raise self.error(f"{name!r} is missing")
        return values

    def build(self, make: Callable[..., T], /, **values: Any) -> T:
        """Makes the object, turning its objection into one that names this place, or the one in it that is at fault."""
        try:
            return make(**values)
        except AnalystError as error:
            raise self._within(place_of(error)).error(str(error), **error.hints) from error
        except ValueError as error:
            raise self._within(place_of(error)).error(_first_line(error)) from error

    def _within(self, names: tuple[str, ...]) -> "Field":
        """The field that is reached by these names, or the last on the way that is written there."""
        found = self
        for name in names:
            inner = found.entries() if isinstance(found.node, MappingNode) else {}
            if name not in inner:
                break
            found = inner[name]
        return found


def read_catalog(path: Path, roots: tuple[str | Path, ...], make: Callable[..., T]) -> T:
    """What `make` makes of `sources`, `folder`, `roots` and `hierarchies` of the file at `path`; see Catalog.load."""
    top = opened(path, "sources")
    readers: dict[str, Reader] = {"sources": _sources, "roots": Field.texts, "hierarchies": _hierarchies}
    values = top.known(readers, required=("sources",))
    found = (*values.get("roots", ()), *roots)
    hierarchies = values.get("hierarchies", [])
    return top.build(
        make, sources=values["sources"], folder=path.resolve().parent, roots=found, hierarchies=hierarchies
    )


def _hierarchies(field: Field) -> list[Hierarchy]:
    readers: dict[str, Reader] = dict.fromkeys(("of", "source", "group", "member", "to"), filled)
    readers |= {
        "description": Field.text,
        "groups": lambda at: {name: tuple(map(filled, one.items())) for name, one in at.entries().items()},
    }
    return [
        one.build(Hierarchy, name=name, **one.known(readers, required=("of",))) for name, one in field.entries().items()
    ]


# What is said in place of what the reader of YAML finds.
_TOLD = {
    r"'\t'": "there is a tab, where only blanks may stand",
    "found '<block mapping start>'": "the line has more or fewer blanks before it than those that it belongs to",
    "unknown escape character": r"a \ within double quotes: in the path of a file, write / in its place",
}


def opened(path: Path, needed: str) -> Field:
    """Returns what a YAML file holds, which must be a mapping with the field `needed`.

    Raises:
        AnalystError: it cannot be read, is no YAML, or is empty.
    """
    try:
        node = compose(small_text(path), Loader=SafeLoader)
    except OSError as error:
        raise AnalystError(f"{path} cannot be read: {error.strerror or error}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise AnalystError(f"{path} is not UTF-8 text, save it as that: {error}", file=str(path)) from error
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        told = next((each for said, each in _TOLD.items() if said in str(error.problem)), error.problem)
        raise AnalystError(f"{path}, line {line}: not valid YAML: {told}", file=str(path), line=line) from error
    except YAMLError as error:
        raise AnalystError(f"{path} is not valid YAML: {error}", file=str(path)) from error
    if node is None:
        raise AnalystError(f"{path} is empty; it needs a '{needed}' mapping", file=str(path))
    return Field(path, node, "")


def _sources(field: Field) -> list[Source]:
    found = [_source(name, entry) for name, entry in field.entries().items()]
    if not found:
        raise field.error("declares no source")
    return found


def _source(name: str, field: Field) -> Source:
    readers: dict[str, Reader] = {
        "description": Field.text,
        "kind": one_of(tuple(kind for kind in KINDS if kind != "frame")),
        "path": filled,
        "table": filled,
        "dsn_env": filled,
        "dimensions": lambda at: tuple(_dimension(key, value) for key, value in at.entries().items()),
        "measures": lambda at: tuple(_measure(key, value) for key, value in at.entries().items()),
        "default_filters": lambda at: tuple(filters_of(at)),
        "tolerance": tolerance_of,
        "text": _text_format,
    }
    return field.build(Source, name=name, **field.known(readers, required=("kind", "measures")))


def _dimension(name: str, field: Field) -> Dimension:
    if _blank(field):
        return Dimension(name=name)
    readers: dict[str, Reader] = {
        "column": filled,
        "type": one_of(KEY_TYPES),
        "description": Field.text,
        "synonyms": Field.texts,
        "format": lambda at: at.build(parse_format, text=", ".join(at.texts())),
        "mapping": _mapping,
    }
    return field.build(Dimension, name=name, **field.known(readers))


def _measure(name: str, field: Field) -> Measure:
    if _blank(field):
        return Measure(name=name)
    readers: dict[str, Reader] = {
        "column": filled,
        "expression": _expression,
        "aggregation": one_of(AGGREGATIONS),
        "description": Field.text,
        "synonyms": Field.texts,
        "unit": Field.text,
        "currency": Field.text,
        "sign": lambda at: int(one_of(("1", "-1", "+1"))(at)),
        "decimals": lambda at: int(one_of(tuple(str(number) for number in range(13)))(at)),
        "tolerance": tolerance_of,
        "conversion": _conversion,
    }
    return field.build(Measure, name=name, **field.known(readers))


def _mapping(field: Field) -> Mapping:
    readers: dict[str, Reader] = dict.fromkeys(("source", "from", "to", "share"), filled)
    values = field.known(readers | {"otherwise": one_of(("refuse", "keep"))}, required=("source", "from", "to"))
    return Mapping(old=values.pop("from"), new=values.pop("to"), **values)


def _conversion(field: Field) -> Conversion:
    readers: dict[str, Reader] = dict.fromkeys(("to", "source", "currency", "rate"), filled)
    values = field.known(readers | {"on": Field.texts}, required=("to", "source", "currency", "rate"))
    return Conversion(**values)


def _expression(field: Field) -> str:
    text = field.text().strip()
    field.build(parse_expression, text=text)
    return text


def tolerance_of(field: Field) -> Tolerance:
    """A tolerance; a single number is its `absolute`."""
    if isinstance(field.node, ScalarNode):
        return field.build(Tolerance, absolute=amount_of(field))
    readers = {name: amount_of for name in Tolerance.__struct_fields__} | {"relative": share_of}
    return field.build(Tolerance, **field.known(readers))


def _text_format(field: Field) -> TextFormat:
    readers: dict[str, Reader] = {
        "delimiter": one_of((",", ";", "\t", "|", "tab")),
        "decimal": one_of((".", ",", UNKNOWN)),
        "thousands": one_of((".", ",", "'", " ", "\u00a0", "")),
        "encoding": _encoding,
        "quotes": lambda at: one_of(("true", "false"))(at) == "true",
        "ruled": lambda at: one_of(("true", "false"))(at) == "true",
        "skip": lambda at: int(one_of(tuple(str(number) for number in range(1001)))(at)),
        "totals": Field.texts,
    }
    values = field.known(readers)
    if values.get("delimiter") == "tab":
        values["delimiter"] = "\t"
    if values.get("thousands", "") == values.get("decimal", "."):
        raise field.error("'thousands' and 'decimal' are the same sign")
    return field.build(TextFormat, **values)


def filters_of(field: Field) -> list[Filter]:
    """Conditions: a mapping of dimensions to values, or a list with `dimension`, `op` and `value` each."""
    if not isinstance(field.node, MappingNode) or "dimension" in field.entries():
        return [filter_of(item) for item in field.items()]
    return [_short_filter(name, at) for name, at in field.entries().items()]


def _short_filter(name: str, field: Field) -> Filter:
    if is_null(field):
        return field.build(Filter, dimension=name, op="is null")
    if isinstance(field.node, SequenceNode):
        return field.build(Filter, dimension=name, op="in", value=list(texts_or_null(field)))
    return field.build(Filter, dimension=name, value=field.text())


def filter_of(field: Field) -> Filter:
    """A condition with `dimension`, `op`, `value` and `inclusive`."""
    readers: dict[str, Reader] = {
        "dimension": filled,
        "op": Field.text,
        "inclusive": one_of(get_args(Ends)),
        "value": lambda at: list(at.texts()) if isinstance(at.node, SequenceNode) else at.text(),
    }
    return field.build(Filter, **field.known(readers, required=("dimension",)))


def texts_or_null(field: Field) -> tuple[str | None, ...]:
    """The texts of a list, None for each that is null."""
    return tuple(None if is_null(item) else item.text() for item in field.items())


def is_null(field: Field) -> bool:
    """Whether nothing, or null, is written there."""
    return isinstance(field.node, ScalarNode) and field.node.tag == "tag:yaml.org,2002:null"


def share_of(field: Field) -> Decimal:
    """A share of A, which is in percent from 1 on."""
    return _number(field, share_in)


def amount_of(field: Field) -> Decimal:
    """A number that is an amount, of which there are no percents."""
    if field.text().strip().endswith("%"):
        raise field.error(f"{field.text()!r} is a share, and an amount is needed; a share of A is '{{relative: 1 %}}'")
    return _number(field, Decimal)


def _number(field: Field, read: Callable[[str], Decimal]) -> Decimal:
    text = field.text().replace("_", "").strip()
    try:
        return read(text)
    except ArithmeticError as error:
        told = "written with a decimal point, and without a sign between thousands, such as 1250.50"
        raise field.error(f"{text!r} is not a number {told}") from error
    except ValueError as error:
        raise field.error(str(error)) from error


def one_of(choices: tuple[str, ...]) -> Callable[[Field], Any]:
    """Returns a reader that takes one of these words, and no other."""

    def read(field: Field) -> str:
        text = field.text()
        if text not in choices:
            near = nearest(text, choices)
            raise field.error(
                f"{text!r} is not supported; there are: {', '.join(map(repr, choices))}",
                given=text,
                nearest=near,
                available=list(choices),
            )
        return text

    return read


def _encoding(field: Field) -> str:
    import codecs

    try:
        return codecs.lookup(field.text()).name
    except LookupError as error:
        raise field.error(f"{field.text()!r} is not an encoding that Python knows") from error


def filled(field: Field) -> str:
    """A text that is not empty."""
    text = field.text()
    if not text.strip() or "\0" in text:
        raise field.error("must not be empty")
    return text


def _blank(field: Field) -> bool:
    return isinstance(field.node, ScalarNode) and field.node.value in ("", "~", "null")


def _first_line(error: ValueError) -> str:
    """What a validation error says, without Pydantic's frame around it."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = next((line for line in lines if line.startswith("Value error, ")), lines[0] if len(lines) < 3 else lines[2])
    return told.removeprefix("Value error, ").split(" [type=")[0]
