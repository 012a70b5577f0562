"""Declaration: proposed sources as the text of a `sources.yaml`, which says of each column what it was taken for.

Pure. Neighbour: `treadle.analyst.asking.propose`, which makes the proposals.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from treadle.analyst.asking.propose import Proposal
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.scalar import scalar
from treadle.analyst.declared.source import TextFormat


def declaration(proposals: Iterable[tuple[Path, Proposal]], folder: Path) -> str:
    """Returns the text of a `sources.yaml`.

    Args:
        proposals: the sources, each with its file.
        folder: where the text will be kept; paths start from it.

    Raises:
        AnalystError: two sources have the same name.
    """
    lines = ["# Proposed from the data. Look through it: the comments say what each column was taken for and why.", ""]
    roots: list[str] = []
    parts: list[str] = []
    names: set[str] = set()
    for file, proposal in proposals:
        source = proposal.source
        if source.name.casefold() in names:
            raise AnalystError(
                f"two of the files would be called {source.name!r}; propose them one by one, and rename one"
            )
        names.add(source.name.casefold())
        place = file.resolve()
        inside = place.is_relative_to(folder.resolve())
        if not inside and str(place.parent) not in roots:
            roots.append(str(place.parent))
        parts += _source_lines(proposal, str(place.relative_to(folder.resolve()) if inside else place))
    if roots:
        lines.append(f"roots: [{', '.join(map(scalar, roots))}]")
    return "\n".join([*lines, "sources:", *parts]) + "\n"


def _source_lines(proposal: Proposal, path: str) -> list[str]:
    source = proposal.source
    lines = [f"  {scalar(source.name)}:", f"    kind: {source.kind}", f"    path: {scalar(path)}"]
    if source.table:
        lines.append(f"    table: {scalar(source.table)}")
    usual = TextFormat()
    fields = [(name, getattr(source.text, name)) for name in usual.__struct_fields__]
    told = [f"{name}: {_value(value)}" for name, value in fields if value != getattr(usual, name)]
    if source.text.skip:
        lines.append(_comment(f"the names of the columns stand below {source.text.skip} other lines", "    "))
    if source.text.quotes is False:
        signs = "quotes are signs like any other, as each line is a row; if they hold lines together, say true"
        lines.append(_comment(signs, "    "))
    if set(source.text.totals) - set(proposal.footers):
        lines.append(_comment("lines marked as totals are left out: they add up the others", "    "))
    if proposal.footers:
        listed = ", ".join(map(scalar, proposal.footers))
        few = f"lines marked by {listed} are left out: they have more or fewer fields than there are names"
        lines.append(_comment(few, "    "))
    lines += [_comment(f"TO BE SAID: {question}", "    ") for question in proposal.questions]
    if told:
        lines.append(f"    text: {{{', '.join(told)}}}")
    lines.append("    dimensions:" if source.dimensions else "    dimensions: {}")
    for item in source.dimensions:
        parts = [("column", item.column), ("type", item.type or ""), ("format", str(item.format))]
        lines += _member_lines(item.name, parts, proposal.guesses[item.source_column].reason)
    lines.append("    measures:")
    for measure in source.measures:
        decimals = "" if measure.decimals is None else str(measure.decimals)
        aggregation = "" if measure.aggregation == "sum" else measure.aggregation
        parts = [("column", measure.column), ("aggregation", aggregation), ("currency", measure.currency)]
        parts.append(("unit", measure.unit))
        reason = (
            proposal.guesses[measure.source_column].reason if measure.source_column != "*" else "no figure was found"
        )
        lines += _member_lines(measure.name, [*parts, ("decimals", decimals)], reason)
    return lines


def _member_lines(name: str, parts: Sequence[tuple[str, str]], reason: str) -> list[str]:
    told = ", ".join(f"{field}: {scalar(value)}" for field, value in parts if value)
    return [_comment(reason, "      "), f"      {scalar(name)}: {{{told}}}"]


def _comment(text: str, indent: str) -> str:
    printable = "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))
    return f"{indent}# {printable}"


def _value(value: str | int | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(scalar, value))}]"
    return str(value) if isinstance(value, int) else scalar(value)
