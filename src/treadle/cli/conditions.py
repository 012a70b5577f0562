"""Conditions on the command line: what `--where` takes, as filters.

`NAME=VALUE`, `!=`, `<`, `<=`, `>`, `>=`; in words `NAME between A and B`, `in A,B`, `not in A,B`, `like A%`,
`is null`, `is not null`, `under GROUP`, `ytd 202405`, `qtd 202405`, `rolling 202405,12`. Commas separate several
values; quotes around a value are taken off, and commas within them are its own.
"""

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from treadle.visible import as_shown, visible

if TYPE_CHECKING:
    from treadle.analyst import Filter

_SIGNS = re.compile(r"\s*(?P<dimension>[^=!<>]+?)\s*(?P<op>!=|<=|>=|=|<|>)\s*(?P<value>.*)", re.DOTALL)
_WORDS = re.compile(
    r"\s*(?P<dimension>[^=!<>]+?)\s+(?P<op>is\s+not\s+null|is\s+null|between|not\s+in|in|like|under|ytd|qtd|rolling)(\s+(?P<value>.*))?",
    re.DOTALL | re.IGNORECASE,
)
_ENDS = re.compile(r"(?P<low>\"[^\"]*\"|'[^']*'|.+?)\s+and\s+(?P<high>.+)", re.DOTALL | re.IGNORECASE)
# What treadle shows behind the ends of a range.
_ENDS_TOLD = re.compile(
    r"(?P<value>.*\])(?=\s+\()(?:\s+\(inclusive: (?P<inclusive>left|right|neither)\))?"
    r"(?:\s+\(all of (?P<last>\d{4}-\d\d-\d\d)\))?",
    re.DOTALL,
)
_VALUES = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[^,]*)\s*(?:,|$)")
_LIST = re.compile(r"\([^()]*\)|\[[^\[\]]*\]", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# A second condition within the value of the first.
_ANOTHER = re.compile(
    r"\s(and|or)\s+[^\s=!<>,]+(\s*[=!<>]|\s+(is|in|like|between|not|under)\s)|,\s*[^\W\d][\w.]*\s*[=!<>]", re.IGNORECASE
)

where_option = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Only these rows: NAME=VALUE, also !=, <, <=, >, >=, NAME=V,W for several values; 'NAME between A and B', "
    "'NAME like A%', 'NAME in A,B', 'NAME is null', 'NAME is not null', 'NAME under GROUP'. Repeatable: all must hold.",
)

where_a_option = click.option(
    "--where-a", multiple=True, metavar="CONDITION", help="The same, for rows of A only; what --where says holds too."
)
where_b_option = click.option("--where-b", multiple=True, metavar="CONDITION", help="The same, for rows of B only.")

subtotals_option = click.option(
    "--subtotals", multiple=True, metavar="NAME", help="A hierarchy, for the subtotals of its groups; repeatable."
)


def filters_of(option: str, given: Sequence[str]) -> "list[Filter]":
    """Returns the conditions that were given with `option`. Raises click.BadParameter for what is none."""
    from pydantic import ValidationError

    from treadle.analyst import Filter

    found = []
    for item in given:
        try:
            found.append(Filter.model_validate(_condition(option, item)))
        except ValidationError as error:
            raise click.BadParameter(f"{item!r}: {error.errors()[0]['msg']}", param_hint=f"'{option}'") from error
    return found


def _condition(option: str, item: str) -> dict[str, Any]:
    bare = _QUOTED.sub("", item)
    if _ANOTHER.search(bare):
        raise _wrong(option, item, f"it is more than one condition; give {option} once for each (all must hold)")
    if found := _WORDS.fullmatch(item):
        op = " ".join(found["op"].lower().split())
        value = (found["value"] or "").strip()
        condition: dict[str, Any] = {"dimension": found["dimension"], "op": op}
        if op.endswith("null"):
            if value:
                raise _wrong(option, item, f"nothing follows {op!r}")
            return condition
        if not value:
            raise _wrong(option, item, f"{op!r} needs a value")
        if op == "between":
            return condition | _between(option, item, value)
        alone = op in ("like", "under", "ytd", "qtd")
        return condition | {"value": _plain(value) if alone else _values(value, one=True)}
    match = _SIGNS.fullmatch(item)
    if match is None:
        raise _wrong(option, item, "it is not NAME=VALUE, such as period=202401, nor 'NAME between A and B'")
    dimension, op, value = match.groups()
    if value[:1] in ("=", "<", ">"):
        signs = "=, !=, <, <=, >, >="
        raise _wrong(option, item, f"there are {signs}; put a value that begins with a sign of them in quotes")
    values = _values(value)
    if op in ("=", "!=") and len(values) > 1:
        return {"dimension": dimension, "op": "in" if op == "=" else "not in", "value": values}
    return {"dimension": dimension, "op": op, "value": _plain(value)}


def _between(option: str, item: str, value: str) -> dict[str, Any]:
    """The ends of a range, as treadle writes them, too, and those of a set of days as the set."""
    told = _ENDS_TOLD.fullmatch(value)
    listed = _values(told["value"] if told else value)
    if told and told["last"]:
        found = {"op": "ytd" if str(listed[0]).endswith("-01-01") else "qtd", "value": told["last"]}
        if listed == _set_of_days(**found):
            return found | ({"inclusive": told["inclusive"]} if told["inclusive"] else {})
    elif told:
        return {"value": listed, "inclusive": told["inclusive"]}
    elif _listed(value, one=False) != value and len(listed) == 2:
        return {"value": listed}
    elif ends := _ENDS.fullmatch(value):
        return {"value": [_plain(ends["low"]), _plain(ends["high"])]}
    raise _wrong(option, item, "'between' needs two values with 'and' between them")


def _set_of_days(op: str, value: str) -> list[str]:
    """The first and the last day of a set; nothing if its last one is none."""
    from treadle.analyst.declared.period_sets import period_set

    try:
        return period_set(op, value)
    except ValueError:
        return []


def _wrong(option: str, item: str, why: str) -> click.BadParameter:
    return click.BadParameter(f"{item!r} cannot be read: {why}", param_hint=f"'{option}'")


def _values(text: str, *, one: bool = False) -> list[str | None]:
    """The values between commas, which may stand in parentheses, `one` alone too; a comma at the end ends none."""
    if (told := _told(text.strip())) is not None:
        return told
    found: list[str | None] = [_plain(part) for part in _VALUES.findall(_listed(text.strip(), one=one))]
    return found[:-1] if len(found) > 1 and found[-1] == "" else found


def _told(text: str) -> list[str | None] | None:
    """The values of a list as treadle shows one, such as ['a', None]; None if it is not written so."""
    try:
        found = ast.literal_eval(text) if text[:1] == "[" else None
    except (ValueError, SyntaxError):
        return None
    values: list[Any] = found if isinstance(found, list) else []
    return [None if value is None else str(value) for value in values] if visible(str(values)) == text else None


def _listed(text: str, *, one: bool) -> str:
    """What stands in the parentheses or brackets around a list, as SQL and treadle itself write one."""
    bare = _QUOTED.sub("''", text)
    return text[1:-1].strip() if _LIST.fullmatch(bare) and (one or "," in bare) else text


def _plain(text: str) -> str:
    """A value without blanks and quotes around it, and as treadle shows one of which not all can be seen."""
    bare = text.strip()
    quoted = len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'"
    if not quoted:
        return bare
    value = as_shown(bare)
    return bare[1:-1] if value is None or value == bare else value
