"""Sentences: the words of each kind of claim, made of its facts and the filters under which they hold, of nothing else.

Pure. A kind that has no words here cannot be claimed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from treadle.analyst.showing.classify import money
from treadle.analyst.showing.units import said_of_spelling
from treadle.visible import seen

Kind = Literal[
    "nothing", "one_empty", "totals", "keys", "offset", "largest", "by_currency", "more_currencies",
    "different_currencies", "unknown_currency", "unknown_unit", "contradicted_unit", "mixed_currencies",
    "filter_without_rows", "no_rows", "spelling", "granularity", "absent", "factor", "sign", "repeated", "duplicates",
    "approximate", "not_a_number", "not_examined", "in_no_group", "in_several_groups",
    "nothing_between", "values_without_rows", "whole_periods", "begun_days",
    "ordered_as_numbers", "to_be_said", "left_out", "no_periods",
]  # fmt: skip
Facts = Mapping[str, Any]
Filters = Sequence[str]
_MOST_SHOWN = 5


def _under(filters: Filters) -> str:
    """The conditions as the beginning of a sentence that would be false without them."""
    return f"where {' and '.join(filters)}, " if filters else ""


def listed(values: Sequence[object], more: int = 0) -> str:
    """The first few values, and that there are more."""
    shown = ", ".join(seen(value) for value in values[:_MOST_SHOWN])
    left = more + max(0, len(values) - _MOST_SHOWN)
    return f"{shown} and {left:,} more" if left else shown


def _all_of(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _keys_of(count: int, what: str = "key") -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class _Shown(dict[str, Any]):
    """The facts of a template, several values as a list in words."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return listed(value) if isinstance(value, (list, tuple)) else value


def _plainly(template: str) -> Callable[[Facts, Filters], str]:
    """The words of a kind that says no more than its facts; `{under}` stands for the conditions."""

    def told(facts: Facts, filters: Filters) -> str:
        return template.format_map(_Shown(facts, under=_under(filters))) + said_of_spelling(facts)

    return told


def _one_empty(facts: Facts, filters: Filters) -> str:
    amounts = facts["amounts"]
    if all(value is None for value, _ in amounts):
        has = f"rows, but no {facts['measure']} in any of them: there is nothing to compare."
    else:
        has = f"{facts['measure']} of {_all_of([_amount(facts, value, unit) for value, unit in amounts])}"
        has += ": there is nothing to compare it with."
    return f"{_no_rows({'side': facts['empty']}, filters)}, while {facts['other']} has {has}"


def _amount(facts: Facts, value: Any, unit: str) -> str:
    """The amount of one side; of several, each with its currency."""
    told = money(value, unit)
    if len(facts["amounts"]) == 1 or (value is not None and unit):
        return told
    return f"{told} in {seen(unit)}" if unit else f"{told} without a currency"


FIGURES = {
    "sum": "the totals", "count": "the totals", "avg": "the averages", "min": "the least amounts",
    "max": "the greatest amounts",
}  # fmt: skip
"""What the figures of all keys together are, by how they are made."""


def _totals(facts: Facts, filters: Filters) -> str:
    a, b, currency = facts["a"], facts["b"], facts.get("currency")
    where = f"{facts['measure']} in {seen(currency)}" if currency else str(facts["measure"])
    if "currency" in facts and not (currency or "").strip():
        where = f"{facts['measure']} without a currency"
    shown = [money(facts[f"value_{side}"], facts[f"unit_{side}"]) for side in "ab"]
    if facts["status"] in ("missing_in_a", "missing_in_b"):
        here, there, value = (a, b, shown[0]) if facts["status"] == "missing_in_b" else (b, a, shown[1])
        return f"{where}: {here} has {value} and {there} has no row."
    opening = f"{where}: {a} has {shown[0]} and {b} has {shown[1]}"
    of = FIGURES[facts["aggregation"]]
    gap, higher = facts["difference"], a if facts["difference"] > 0 else b
    if not facts["known"]:
        size = "the same number" if not gap else f"a number that is higher by {gap.copy_abs():,f} in {higher}"
        return f"{opening}: {size}, but whether both are of one unit is not known."
    if not gap:
        empty = sum(facts[f"value_{side}"] is None for side in "ab")
        equal = (f"{of} are equal", f"{of} match, what is empty counting as zero", "neither has an amount")
        return f"{opening}: {equal[empty]}."
    side = "higher" if gap > 0 else "lower"
    told = {"match": f"{of} match", "minor_diff": "a minor difference"}.get(facts["status"], "a major difference")
    return f"{opening}, so {a} is {side} by {money(gap.copy_abs(), facts['unit'])}: {told} ({facts['reason']})."


def _keys(facts: Facts, filters: Filters) -> str:
    by, total, matches = _all_of(facts["dimensions"]), facts["total"], facts["matches"]
    a, b, only_a, only_b = facts["a"], facts["b"], facts["missing_in_b"], facts["missing_in_a"]
    if only_a + only_b == total:
        return f"By {by} the two have no key in common: {only_a:,} only in {a}, {only_b:,} only in {b}."
    if matches == total:
        how = "" if facts["known"] else " as numbers"
        return f"By {by} all {total:,} keys match{how}." if total > 1 else f"By {by} the one key matches{how}."
    if total == 1:
        return f"By {by} there is one key, and it does not match."
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (facts["major"], "with a major difference"),
            (facts["minor"], "with a minor difference"),
            (only_b, f"missing in {a}"),
            (only_a, f"missing in {b}"),
        )
        if count
    ]
    rate = f"{facts['rate']:g} %" if facts["rate"] or not matches else "below 0.01 %"
    how = "match" if facts["known"] else "match as numbers"
    return f"By {by}, {_band(matches, total)} of the keys {how} ({matches:,} of {total:,}, {rate}); {', '.join(parts)}."


def _band(matches: int, total: int) -> str:
    """How many of the keys match, in words; whole numbers only, so that no rounding decides."""
    if not matches:
        return "none"
    if matches * 2 == total:
        return "half"
    bands = ((99, "nearly all"), (90, "most"))
    told = next((words for least, words in bands if matches * 100 >= least * total), "more than half")
    return told if matches * 2 > total else "less than half"


def _offset(facts: Facts, filters: Filters) -> str:
    currency = f" in {seen(facts['currency'])}" if facts.get("currency") else ""
    gross = money(facts["gross"], facts["unit"])
    if facts["only"]:
        return (
            f"The totals{currency} agree only because differences offset each other: without their signs they add up "
            f"to {gross}."
        )
    return (
        f"Differences{currency} partly offset each other: without their signs they add up to {gross}, "
        f"{money(facts['more'], facts['unit'])} more than the totals show."
    )


def _largest(facts: Facts, filters: Filters) -> str:
    key = ", ".join(f"{name} {seen(value)}" for name, value in facts["key"].items())
    of = f" in {seen(facts['currency'])}" if facts["currency"] else " without a currency" if facts["parted"] else ""
    among = f"Of the keys{of} that do not match"
    if not facts["difference"]:
        return f"{among}, the first is {key}: {facts['reason']}."
    size = money(facts["difference"], facts["unit"])
    there = ", though not only there" if facts["tied"] else ""
    return f"{among}, the largest difference is {size} at {key} ({facts['status']}){there}."


def _different_currencies(facts: Facts, filters: Filters) -> str:
    parts = [
        f"only {name} has {facts['measure']} in {listed(facts[side])}"
        for side, name in (("only_a", facts["a"]), ("only_b", facts["b"]))
        if facts[side]
    ]
    told = f"{_under(filters)}{'; '.join(parts)}: amounts of different currencies are not compared"
    return told + said_of_spelling(facts)


def _unknown_unit(facts: Facts, filters: Filters) -> str:
    return (
        f"{facts['measure']} of {facts['other']} is in {seen(facts['unit'])}, and nothing says what that of "
        f"{facts['side']} is in: the figures are compared as numbers; declare 'unit' or 'currency' on measure "
        f"{facts['own']} of {facts['side']}"
    )


def _filter_without_rows(facts: Facts, filters: Filters) -> str:
    shown = ", ".join(seen(value) for value in facts["values"][:_MOST_SHOWN])
    more = ", …" if len(facts["values"]) > _MOST_SHOWN else ""
    return (
        f"{facts['side']} has no row with {facts['condition']}; its values of {facts['dimension']} are "
        f"{shown + more or 'none at all'}"
    )


def _values_without_rows(facts: Facts, filters: Filters) -> str:
    names = facts["sides"]
    who = f"neither {names[0]} nor {names[1]} has" if len(names) > 1 else f"{names[0]} has no"
    one = len(facts["values"]) == 1
    then = (
        f"leaving {'it' if one else 'them'} out changes nothing" if facts["left_out"] else "the others are all there is"
    )
    row = "a row" if len(names) > 1 else "row"
    return f"{_under(filters)}{who} {row} with {facts['dimension']} {listed(facts['values'])}: {then}"


def _whole_periods(facts: Facts, filters: Filters) -> str:
    pairs = [
        f"{seen(day)} stands for all of {seen(period)}"
        for day, period in zip(facts["days"], facts["periods"], strict=True)
    ]
    return f"{facts['dimension']} tells periods, not days: in '{facts['condition']}' {_all_of(pairs)}"


def _begun_days(facts: Facts, filters: Filters) -> str:
    name, day, after = facts["dimension"], facts["days"][0], facts["after"]
    behind = f"'{name} >= {after}'"
    does, advice = {
        (True, True): ("leaves out", f"'{name} >= {day}' and '{name} < {after}' have all of {day}"),
        (True, False): ("takes in", f"'{name} < {day}' has what is before {day}, {behind} what is behind it"),
        (False, True): ("leaves out", f"'{name} < {after}' has all of that day"),
        (False, False): ("takes in", f"{behind} has none of that day"),
    }[facts["asked"], facts["left_out"]]
    told = f"has rows with times of {listed(facts['days'])} that '{facts['condition']}' {does}"
    return f"{_under(filters)}{facts['side']} {told}: {advice}"


def _left_out(facts: Facts, filters: Filters) -> str:
    count, lines = facts["count"], facts["lines"]
    these = "a line" if count == 1 else f"{count:,} lines"
    one, cut = ("a total", "a row that was") if count == 1 else ("totals", "rows that were")
    return (
        f"{facts['side']} leaves out as {one} {these} with fewer fields than there are names, which may be {cut} cut "
        f"off: {listed(lines, count - len(lines))}; such a row has to be completed in the file"
    )


def _no_rows(facts: Facts, filters: Filters) -> str:
    return f"{facts['side']} has no row {_passing(filters)}"


def _nothing(facts: Facts, filters: Filters) -> str:
    return f"Neither {facts['a']} nor {facts['b']} has a row {_passing(filters)}: there is nothing to compare."


def _passing(filters: Filters) -> str:
    return "that passes the filters" if filters else "at all"


def _spelling(facts: Facts, filters: Filters) -> str:
    return (
        f"{_under(filters)}{_keys_of(facts['count'])} that {'is' if facts['count'] == 1 else 'are'} missing on one "
        f"side each would meet if {facts['dimension']} were compared in another spelling: declare "
        f"'{facts['declare']}' on dimension {facts['dimension']} of {' or '.join(facts['declaring'])}"
    )


def _no_periods(facts: Facts, filters: Filters) -> str:
    shown = f"{listed(facts['values'])}{', …' if facts['more'] else ''}"
    return (
        f"{_under(filters)}{facts['side']} has {shown} as {facts['dimension']}, which 'format: fiscal_period' does not "
        f"read, so that they meet no period of the other side: have them written as 2024-01, or declare a 'mapping'"
    )


def _granularity(facts: Facts, filters: Filters) -> str:
    return (
        f"{facts['coarse']} does not break down by {facts['dimension']} (all its rows"
        f"{', whatever the filters,' if filters else ''} have one value there, {seen(facts['value'])}), "
        f"{facts['fine']} does: compare without {facts['dimension']}, where "
        f"{_keys_of(facts['meeting'])} {'meets' if facts['meeting'] == 1 else 'meet'}"
    )


def _absent(facts: Facts, filters: Filters) -> str:
    left = facts["count"] - len(facts["values"])
    return (
        f"{_under(filters)}{facts['side']} has no row {'' if filters else 'at all '}for {facts['dimension']} "
        f"{listed(facts['values'], left)}, {facts['other']} has"
    )


def _of_all(facts: Facts) -> str:
    count, total = facts["count"], facts["total"]
    where = "that both have with an amount"
    return f"in the one key {where}" if total == 1 else f"in {count:,} of the {total:,} keys {where}"


def _factor(facts: Facts, filters: Filters) -> str:
    return (
        f"{_under(filters)}{_of_all(facts)}, {facts['large']} is exactly {facts['factor']} times {facts['small']}: "
        f"probably currency decimals, or a unit such as thousands"
    )


def _sign(facts: Facts, filters: Filters) -> str:
    return (
        f"{_under(filters)}{_of_all(facts)}, the two sides have the same amount with opposite signs: if that is so for "
        f"all of its data, declare 'sign: -1' on measure {facts['measure']} of one of them"
    )


def _duplicates(facts: Facts, filters: Filters) -> str:
    keys = f"{_keys_of(facts['count'])} that {'differs' if facts['count'] == 1 else 'differ'}"
    return f"{_under(filters)}{facts['side']} holds identical rows; taken once each, {keys} would be equal"


def _not_a_number(facts: Facts, filters: Filters) -> str:
    rows = "1 row holds NaN and is" if facts["count"] == 1 else f"{facts['count']:,} rows hold NaN and are"
    empty = "it were" if facts["count"] == 1 else "they were"
    return f"{facts['measure']} of {facts['side']}: {rows} left out, as if {empty} empty"


def _not_examined(facts: Facts, filters: Filters) -> str:
    return f"{facts['what']}: {facts['why']}" if facts["why"] else str(facts["what"])


def _in_no_group(facts: Facts, filters: Filters) -> str:
    is_or_are = "is" if facts["count"] == 1 else "are"
    return (
        f"{_under(filters)}{facts['dimension']} {listed(facts['values'], facts['count'] - len(facts['values']))} "
        f"{is_or_are} in no group of hierarchy {facts['hierarchy']}: no group's subtotal has "
        f"{'its' if facts['count'] == 1 else 'their'} figures"
    )


def _in_several_groups(facts: Facts, filters: Filters) -> str:
    shown = [f"{seen(name)} (in {_all_of([*map(seen, groups)])})" for name, groups in facts["members"].items()]
    left = facts["count"] - len(shown)
    them = f"{', '.join(shown)} and {left:,} more" if left else _all_of(shown)
    return (
        f"{_under(filters)}{them} of hierarchy {facts['hierarchy']} {'is' if facts['count'] == 1 else 'are'} right "
        f"below more than one group, whose subtotals each have the figures: these do not add up"
    )


SENTENCES: dict[Kind, Callable[[Facts, Filters], str]] = {
    "nothing": _nothing,
    "one_empty": _one_empty,
    "totals": _totals,
    "keys": _keys,
    "offset": _offset,
    "largest": _largest,
    "by_currency": _plainly(
        "{measure} is told by {dimension}, as amounts of different currencies are not added up: {a} has "
        "{currencies_a}; {b} has {currencies_b}."
    ),
    "more_currencies": _plainly("{count:,} more currencies stand in the totals by currency."),
    "different_currencies": _different_currencies,
    "unknown_currency": _plainly(
        "{under}{measure} of {side} has rows without a {dimension}: what these amounts are measured in is not known"
    ),
    "unknown_unit": _unknown_unit,
    "contradicted_unit": _plainly(
        "{under}{measure} of {side} is declared to be in {unit}, but its rows have {dimension} {currencies}: neither "
        "is taken for its unit"
    ),
    "mixed_currencies": _plainly(
        "{under}{measure} of {side} is told by {dimension} ({currencies}), as amounts of different currencies are not "
        "added up"
    ),
    "filter_without_rows": _filter_without_rows,
    "no_rows": _no_rows,
    "spelling": _spelling,
    "no_periods": _no_periods,
    "granularity": _granularity,
    "absent": _absent,
    "factor": _factor,
    "sign": _sign,
    "repeated": _plainly(
        "{under}in {count:,} of the {total:,} keys that do not match, {large} has {factor} times the amount and "
        "{factor} times the rows of {small}: the rows of these keys were probably taken in {factor} times"
    ),
    "duplicates": _duplicates,
    "approximate": _plainly(
        "{measure} of {side} is approximate: its column holds floating-point numbers, of which some ten decimals are "
        "read; differences that these can be off by count as matches"
    ),
    "not_a_number": _not_a_number,
    "not_examined": _not_examined,
    "nothing_between": _plainly(
        "no value is {condition}: write the lower end first, and let both belong to it if they are the same"
    ),
    "ordered_as_numbers": _plainly(
        "the rows are in the order of {measure} as a number, whatever its {dimension}: which amount of several "
        "currencies is more is not known"
    ),
    "to_be_said": _plainly("{side} was proposed from its data, which leave this open: {question}"),
    "values_without_rows": _values_without_rows,
    "whole_periods": _whole_periods,
    "begun_days": _begun_days,
    "left_out": _left_out,
    "in_no_group": _in_no_group,
    "in_several_groups": _in_several_groups,
}
"""The words of each kind, which end as a sentence in an interpretation does, and without a full stop as a warning."""
