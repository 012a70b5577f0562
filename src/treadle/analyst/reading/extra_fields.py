"""Extra fields: values of a CSV file that stand under no name, as those behind a number with the delimiter in it do.

    Konto,Text,Betrag,
    100,foo,12,50,

Read by the names, 12,50 would be 12. The engine leaves out empty fields at the end of a line, of which such a line has
more than others; so a file that has any is read once more, where it is told to leave out none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.amounts import BLANKS
from treadle.analyst.reading.encodings import in_bytes
from treadle.analyst.reading.faults import HELD_DELIMITER, ONE_NAME
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, literal, scan

_PIECE = 1 << 20
_LONGEST_END = 8
# No text has it, so that an empty field is one as well.
_NO_NULL = "\x01"


class Head(Struct, frozen=True):
    """How a CSV file begins.

    Attributes:
        names: the columns' names; those without one have one made of their place.
        end: how the line of names ends; empty if nothing follows.
        unnamed: how many columns at the end have no name.
        extra: how many more fields the first row has.
    """

    names: list[str]
    end: str
    unnamed: int
    extra: int


def refuse_extra_fields(
    session: Session, source: Source, file: Path, read: Path, head: Head, options: Mapping[str, "exp.Expr"]
) -> None:
    """Refuses a file in which a value has no name, or a line more fields than others; once in a session.

    Args:
        session: reads the file.
        source: what it is of; a column that it declares need have no name, nor any while nothing is declared.
        file: the file.
        read: it, or what was made of it for the engine.
        head: how it begins.
        options: how the engine reads it.

    Raises:
        AnalystError: it is refused.
    """
    declared = Demand(source.dimensions, source.measures)
    known = declared.columns if declared != Demand((), ()) else head.names
    width = len(head.names)
    places = [at for at in range(width - head.unnamed, width) if head.names[at] not in known]
    places += range(width, width + head.extra)
    if (file, *places) in session.sound:
        return
    delimiter, encoding = options["delim"].this, options["encoding"].this
    if _ends_open(session, read, delimiter, encoding) or places:
        _look(session, source, file, read, head, options, places)
    session.sound.add((file, *places))


def all_fields(head: Head, options: Mapping[str, "exp.Expr"]) -> dict[str, "exp.Expr"]:
    """Returns how the engine reads each field of a line, so that it takes none that has others than the first row."""
    names = [exp.to_identifier(f"c{at}") for at in range(len(head.names) + head.extra)]
    columns = [exp.PropertyEQ(this=name, expression=literal("VARCHAR")) for name in names]
    return {**options, "nullstr": literal(_NO_NULL), "columns": exp.Struct(expressions=columns)}


def _look(
    session: Session,
    source: Source,
    file: Path,
    read: Path,
    head: Head,
    options: Mapping[str, "exp.Expr"],
    places: Sequence[int],
) -> None:
    width = len(head.names)
    rows = scan("read_csv", [session.plain(read)], all_fields(head, options))
    values = [
        exp.Max(this=call("nullif", call("trim", exp.column(f"c{at}"), literal(BLANKS)), literal(""))) for at in places
    ]
    try:
        found = session.run(exp.select(exp.Count(this=exp.Star()), *values).from_(rows))[0][1:]
    except AnalystError as error:
        if not head.extra:
            raise
        # The engine was told of the fields of the first row.
        told = f"{str(error).replace('the line of names', 'the first row')}; {HELD_DELIMITER}"
        raise type(error)(told) from error
    for at, value in zip(places, found, strict=True):
        # One right behind the last name is refused by whoever reads the rows, who knows the line.
        if value is not None and at != width:
            or_so = f", or declare a dimension with 'column: {head.names[at]}'" if at < width else ""
            advice = f"{HELD_DELIMITER}; if it is a column, give it a name there{or_so}"
            raise AnalystError(
                f"source {source.name!r}: {file.name} has {value!r} in field {at + 1} of a line, which has no name: "
                f"{ONE_NAME if width == 1 else advice}"
            )


def _ends_open(session: Session, file: Path, delimiter: str, encoding: str) -> bool:
    """Whether a line ends in a delimiter, as each with an empty field at its end does.

    A packed file is read to its end, where its checksum stands, at which the engine does not look.
    """
    encodings = ("utf-16-le", "utf-16-be") if encoding == "utf-16" else (encoding,)
    signs = tuple(delimiter.encode(one) for one in encodings)
    ends = [f"{delimiter}{end}".encode(one) for one in encodings for end in "\r\n"]
    packed, found, tail = file.suffix == ".gz", False, b""
    with in_bytes(file) as opened:
        while (packed or not found) and (piece := opened.read(_PIECE)):
            session.check()
            piece = tail + piece
            found = found or any(end in piece for end in ends)
            tail = piece[-_LONGEST_END:]
    return found or tail.endswith(signs)
