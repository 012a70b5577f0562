"""Writing up: what the tools returned, in a few plain sentences.

Every figure comes from a tool result or, marked as such, from the question; the only thing worked out here is which of
two numbers is larger. Called by `model`.
"""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.answer.declined import SIGNATURE, capabilities, listed
from treadle.models.offline.answer.empty_keys import empty_asked, with_empty_keys
from treadle.models.offline.answer.partial import are_asked_for, part_of_a_list
from treadle.models.offline.answer.reckoned import told_of_both, told_of_records
from treadle.models.offline.answer.row_numbers import how_many_are_listed, number_of_rows
from treadle.models.offline.grammar.comparison import Relation, find_comparison
from treadle.models.offline.grammar.periods import is_to_date
from treadle.models.offline.grammar.quantities import scale_of
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import likeness, names_match, parts, stem
from treadle.models.offline.plan.account import Left
from treadle.models.offline.plan.kinds import is_of_the_kind
from treadle.models.offline.plan.outcome import Outcome, Plan, Trouble
from treadle.models.offline.plan.results import (
    Field,
    asked,
    fields_of,
    figure,
    has_figure,
    in_units,
    is_nothing,
    measured_in,
    number_of,
    rows_of,
    tells_why,
    with_units,
)
from treadle.models.offline.plan.toolbox import MARKERS, KnownTool, Toolbox
from treadle.models.offline.plan.transcript import Exchange

_SENTENCES = ("interpretation", "summary", "answer", "explanation", "message", "text", "description")
_RESULTS = ("result", "value", "answer", "output")
_NOTES, _QUALIFIERS = ("warnings", "notes"), ("currency", "timezone")
_IN_WORDS = {"!=": "is not", "not in": "is not", "in": "=", "==": "=", "eq": "="}
_ROWS, _FIELDS, _CELL = 10, 8, 60
_ROW_WORDS = re.compile(r"\b(?:which|where|top|largest|biggest|list|by|per|each|differences)\b", re.IGNORECASE)


def write_up(plan: Plan, box: Toolbox, unfinished: bool = False, read_as: str = "") -> str:
    """The answer to the question that was planned for.

    Args:
        plan: what is done, and what went wrong.
        box: the tools offered, for what can be done instead.
        unfinished: whether calls that were still needed may not be made.
        read_as: the whole question that a follow-up was taken for.
    """
    parts_said = [
        f"I could not plan this part with the tools at hand: “{clause.strip(' .?!')}”." for clause in plan.unplanned
    ]
    for outcome in plan.outcomes:
        parts_said += _outcome(outcome, box, unfinished)
    if plan.unplanned:
        parts_said.append(capabilities(box))
    if read_as:
        parts_said.insert(0, f"I read that as: “{read_as}”.")
    return "\n".join([*dict.fromkeys(parts_said), SIGNATURE])


def structured(plan: Plan, schema: Json, text: str) -> str | None:
    """The results as the JSON object that `schema` asks for; None if they do not hold all that it requires."""
    found = [found for outcome in plan.outcomes for exchange in outcome.done for found in fields_of(exchange.result)]
    answer: Json = {}
    for name, inner in schema.get("properties", {}).items():
        stems = tuple(stem(word) for word in parts(name))
        best = max(found, key=lambda each: names_match(each.stems, stems), default=None)
        if best is not None and names_match(best.stems, stems) >= 0.5:
            answer[name] = _as_type(best.value, inner.get("type"))
        elif inner.get("type") == "string" and name in _SENTENCES:
            answer[name] = text
        elif len(found) == 1 and len(schema["properties"]) == 1:
            answer[name] = _as_type(found[0].value, inner.get("type"))
    missing = [name for name in schema.get("required", ()) if name not in answer]
    return None if missing or not answer else json.dumps(answer, ensure_ascii=False)


def _as_type(value: Any, kind: Any) -> Any:
    number = number_of(value)
    if kind == "integer" and number is not None and number == number.to_integral_value():
        return int(number)
    if kind == "number" and number is not None:
        return float(number)
    return str(value) if kind == "string" else value


def _outcome(outcome: Outcome, box: Toolbox, unfinished: bool) -> list[str]:
    said = [
        f"I took “{written}” to mean {name}."
        for written, name in outcome.renamed.items()
        if outcome.done and (likeness(written, name) < 0.97 or "_" in name) and written.lower() != name.lower()
    ]
    for exchange in outcome.done:
        tool = box.named(exchange.tool)
        nothing = "\n".join(["Nothing was found for that.", *_notes(exchange.result)])
        text = nothing if is_nothing(exchange.result) else _result(exchange, outcome, tool)
        if outcome.reckoning is not None:
            text = told_of_records(*outcome.reckoning, exchange.tool, lambda rows: _rows("", rows, False))
        said.append("\n".join([text, *_asked_with(exchange, text)]))
    said += [told_of_both(outcome.comes_to)] if outcome.comes_to is not None else []
    said += [_trouble(trouble) for trouble in outcome.troubles]
    left = outcome.left or Left()
    if left.forbids:
        said = [_refusal(left)]
    elif outcome.apart and outcome.done:
        said.insert(0, f"Left out of account: {listed(outcome.apart)}. What follows is the answer without it.")
    if outcome.calls and unfinished:
        names = ", ".join(dict.fromkeys(call.tool for call in outcome.calls))
        said.append(f"Not finished: “{outcome.clause.text.strip(' .?!')}” still needs {names}.")
    return said


def _asked_with(exchange: Exchange, text: str) -> list[str]:
    """The arguments that an answer does not repeat, a line of them; conditions always."""
    given: list[str] = []
    for name, value in exchange.arguments.items():
        label = " ".join(parts(name))
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            given += [_condition(row) for row in value]
        elif isinstance(value, dict):
            given += [f"{field} = {each}" for field, each in value.items()]
        elif isinstance(value, bool):
            given.append(f"{label} {'yes' if value else 'no'}")
        else:
            values = value if isinstance(value, list) else [value]
            if not all(_told(text, each) for each in values):
                given.append(f"{label} {', '.join(str(each) for each in values)}")
    held = _held_besides(exchange)
    own = [f"Under conditions of its own: {'; '.join(held)}."] if held else []
    return [*([f"Asked with: {'; '.join(given)}."] if given else []), *own]


def _held_besides(exchange: Exchange) -> list[str]:
    """The conditions that a result says it is under, on fields that nobody asked about."""
    held = exchange.result.get("filters") if isinstance(exchange.result, dict) else None
    lists = [value for value in exchange.arguments.values() if isinstance(value, list)]
    named = {str(next(iter(row.values()), "")) for rows in lists for row in rows if isinstance(row, dict)}
    named.update(exchange.arguments, *(value for value in exchange.arguments.values() if isinstance(value, dict)))
    texts = [text for text in held if isinstance(text, str)] if isinstance(held, list) else []
    return [text for text in texts if not any(text.startswith(f"{name} ") for name in named)]


def _told(text: str, value: Any) -> bool:
    return has_figure(text, value) if number_of(value) is not None else str(value).lower() in text.lower()


def _condition(row: Json) -> str:
    """ "account is not 800200": one filter, in words."""
    field, *rest = row.values()
    op = str(next((row[key] for key in ("op", "operator", "operation") if key in row), "="))
    values = [each for key, each in row.items() if key in ("value", "values", "equals")] or rest[-1:]
    if values == [op]:
        return f"{field} {op}"
    shown = values[0] if values else ""
    listed = [str(each) for each in shown] if isinstance(shown, list) else [str(shown)]
    if op == "between" and len(listed) == 2:
        return f"{field} from {listed[0]} to {listed[1]}"
    return f"{field} {_IN_WORDS.get(op, op)} {' or '.join(listed)}"


def _refusal(left: Left) -> str:
    """Why there is no answer: it would be one to another question."""
    words = listed(list(dict.fromkeys([*left.turning, *left.spare])))
    open_ended = next((word for word in left.turning if is_to_date(word)), "")
    advice = f" Say up to which month “{open_ended}” goes, such as “year to date 202403”." if open_ended else ""
    return (
        f"I cannot answer that as it was asked: with the tools at hand I do not know what to do with {words}, and an "
        f"answer that leaves it out would be one to another question.{advice}"
    )


def _trouble(trouble: Trouble) -> str:
    message = trouble.message.rstrip(".")
    text = f"I could not finish: {message}."
    listed = [name for name in trouble.available if name not in message]
    return text + (f" Available: {', '.join(trouble.available[:20])}." if listed else "")


def _result(exchange: Exchange, outcome: Outcome, tool: KnownTool | None) -> str:
    clause, result = outcome.clause, exchange.result
    expression = next((exchange.arguments.get(p.name) for p in tool.params if p.is_expression), None) if tool else None
    fields = [*fields_of(result), *empty_asked(result, clause)]
    if expression is not None and fields:
        value = next((found for found in fields if found.name in _RESULTS), fields[-1])
        asked_of, have = find_comparison(clause, outcome.used), number_of(value.value)
        if asked_of is not None and have is not None:
            need = asked_of.number.text
            true, relation = _related(have, asked_of.relation, Decimal(need.replace(",", "")))
            relation = {"enough for": "at least"}.get(relation, relation)
            yes = "Yes" if true else "No"
            return f"{yes}. {expression} = {value.value}, which is {relation} the {need} in your question."
        return f"{expression} = {value.value}"
    # Yes or no to a question without some of its words is none to the question.
    whole = clause.is_yes_or_no and not (outcome.left and outcome.left.spare)
    verdict = _verdict(fields, exchange, outcome) if whole else None
    if verdict is not None:
        return verdict
    if counted := number_of_rows(*_split(fields, exchange, outcome.called), exchange, clause):
        return counted
    if not isinstance(result, dict | list):
        return _scalar(result, exchange)
    sentence = next((found for name in _SENTENCES for found in fields if found.path == (name,)), None)
    if (
        sentence is not None
        and isinstance(sentence.value, str)
        and (len(fields) > 6 or sentence.name == "interpretation" or " " in sentence.value.strip())
    ):
        return _with_sentence(sentence, fields, exchange, clause)
    lists = _telling(result)
    part, fields = part_of_a_list(result, fields)
    wanted_lists = are_asked_for(lists, clause)
    facts = _facts(fields, exchange, outcome, wanted_lists) if fields else ""
    lines = [part, facts, how_many_are_listed(exchange, tool, clause)]
    for name, rows in lists:
        single = len(rows) == 1 and all(has_figure(facts, found.value) for found in fields_of(rows[0]))
        # With a colon, what was asked about is all that the facts say.
        wanted = facts.endswith(":") and {stem(word) for word in parts(name)} <= {token.stem for token in clause.tokens}
        told = single or (not rows and facts and not wanted)
        rows = with_empty_keys(rows, exchange.arguments)
        lines += [] if told else _rows(name, rows, bool(name) and (not fields or len(lists) > 1 or not wanted_lists))
    if all(len(rows) <= _ROWS for _, rows in lists) and isinstance(note := _entry(result, "note"), str):
        # Of more rows than are told it would not be true.
        lines.append(f"Note: {note}")
    lines += _notes(result)
    return "\n".join(line for line in lines if line) or f"{exchange.tool} returned nothing."


def _notes(result: Any) -> list[str]:
    """The warnings that a result carries, a line each."""
    notes = [note for name, rows in rows_of(result) if name in _NOTES for note in rows]
    return [f"Note: {note.get('message', note) if isinstance(note, dict) else note}" for note in notes]


def _entry(result: Any, name: str) -> Any:
    return result.get(name) if isinstance(result, dict) else None


def _telling(result: Any) -> list[tuple[str, list[Any]]]:
    """The lists of a result that answer: those of records if there are any, else those that are not empty."""
    lists = [(name, rows) for name, rows in rows_of(result) if name not in _NOTES]
    records = [(name, rows) for name, rows in lists if rows and all(isinstance(row, dict) for row in rows)]
    return records or [(name, rows) for name, rows in lists if rows] or lists[:1]


def _scalar(result: Any, exchange: Exchange) -> str:
    text = "Yes" if result is True else "No" if result is False else str(result)
    if isinstance(result, str) and " " in text.strip() and len(text) > 30:
        return text
    given = ", ".join(str(value) for value in exchange.arguments.values() if isinstance(value, str | int | float))
    label = " ".join(parts(exchange.tool))
    return f"{label}{f' ({given})' if given else ''}: {text}"


def _with_sentence(sentence: Field, fields: list[Field], exchange: Exchange, clause: Clause) -> str:
    """The tool's own sentence, and what else the clause names that the sentence does not tell."""
    text, stems = str(sentence.value).strip(), {token.stem for token in clause.tokens}
    more = [
        f"{found.label} {figure(found.value, found.name)}"
        for found in fields
        if found is not sentence
        and set(found.stems) - MARKERS <= stems
        and number_of(found.value) is not None
        and not has_figure(text, found.value)
    ][:_FIELDS]
    lines = [f"{text} ({'; '.join(more)})" if more else text]
    if _ROW_WORDS.search(clause.text):
        lists = [(name, rows[:5]) for name, rows in _telling(exchange.result) if isinstance(rows[0], dict)]
        # One by something is for a question by that.
        lists.sort(key=lambda one: one[0].startswith("by_") and not stems & {stem(word) for word in parts(one[0])[1:]})
        for name, rows in lists[:1]:
            lines += _rows(name, with_empty_keys(rows, exchange.arguments), True)
    return "\n".join([*lines, *_notes(exchange.result)])


def _facts(fields: list[Field], exchange: Exchange, outcome: Outcome, beside_rows: bool = False) -> str:
    """ "apple: unit price 0.40 USD": what was asked about, then the fields that the question asks for, else all."""
    subject, rest = _split(fields, exchange, outcome.called)
    # What only repeats an argument that was left at its default answers nothing.
    given = {param.name for tool in outcome.tools if tool.name == exchange.tool for param in tool.params}
    left_out = outcome.left.spare if outcome.left is not None else ()
    wanted = asked([found for found in rest if found.name not in given] or rest, outcome.clause, left_out)
    if (not wanted and not beside_rows) or (wanted and not is_of_the_kind(outcome.clause, wanted)):
        wanted = rest
    unit = next((found for found in rest if found.name in _QUALIFIERS), None)
    said = ", ".join(with_units(rest, [found for found in wanted[:_FIELDS] if found is not unit]))
    if unit is not None and any(found is not unit and re.search(r"\d", str(found.value)) for found in wanted):
        said += f" {unit.value}"
    elif unit is not None and unit in wanted:
        said = ", ".join(filter(None, [said, f"{unit.label} {unit.value}"]))
    alone = f"{subject}{in_units(rest)}:" if beside_rows and subject else said or subject
    return f"{subject}: {said}" if subject and said else alone


_IS_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
"""An amount, which tools that take exact decimals are given as text."""


def _split(fields: list[Field], exchange: Exchange, called: dict[str, str]) -> tuple[str, list[Field]]:
    """What was asked about, as one text, and the fields that do not merely repeat it."""
    given = exchange.arguments
    words = [
        called.get(f"{name}={value}", str(value))
        for name, value in given.items()
        if (isinstance(value, str) and not _IS_NUMBER.fullmatch(value)) or f"{name}={value}" in called
    ]
    same = [
        found
        for found in fields
        if (isinstance(found.value, str) and any(likeness(word, found.value) >= 0.97 for word in words))
        or (found.name in given and str(found.value) == str(given[found.name]))
    ]
    own = {word: found.value for word in words for found in same if likeness(word, str(found.value)) >= 0.97}
    subject = ", ".join(str(own.get(word, word)) for word in words) or ", ".join(
        f"{' '.join(parts(name))} {value}"
        for name, value in given.items()
        if isinstance(value, int) or (isinstance(value, str) and _IS_NUMBER.fullmatch(value))
    )
    return subject, [found for found in fields if found not in same and found.value != ""]


def _rows(name: str, rows: Sequence[Any], titled: bool) -> list[str]:
    if not rows:
        return [f"No {' '.join(parts(name)) or 'results'} were found."]
    lines = [f"{' '.join(parts(name)).capitalize()}:"] if titled else []
    lines += [f"- {_row(row)}" for row in rows[:_ROWS]]
    return lines + (["- … and more"] if len(rows) > _ROWS else [])


def _row(row: Any) -> str:
    if not isinstance(row, dict):
        return str(row)
    title = next((str(row[key]) for key in ("name", "title", "id") if isinstance(row.get(key), str)), "")
    said = [
        str(found.value).rstrip(".")
        if found.name == "description"
        else f"{found.label} {figure(found.value, found.name)}"
        for found in fields_of(row)
        if str(found.value) not in ("", title) and (found.name == "description" or len(str(found.value)) <= _CELL)
    ]
    for name, inner in rows_of(row):
        names = [str(item.get("name", item.get("id", ""))) if isinstance(item, dict) else str(item) for item in inner]
        if inner:
            said.append(f"{' '.join(parts(name))} {', '.join(filter(None, names[:_ROWS]))}")
    return f"{title}: {'; '.join(said)}" if title and said else title or ", ".join(said)


def _verdict(fields: list[Field], exchange: Exchange, outcome: Outcome) -> str | None:
    """Yes or no, where the question asks for it: by the result's own truth value, or by comparing its figure with the
    one in the question."""
    clause = outcome.clause
    subject, rest = _split(fields, exchange, outcome.called)
    truths = [found for found in rest if isinstance(found.value, bool)]
    wanted = find_comparison(clause, outcome.used)
    if wanted is None:
        if len(truths) != 1 or not fields[0].path:
            return None
        beside = [f for f in fields if f not in rest or tells_why(f.stems) or not asked(truths, clause)]
        detail = _facts([found for found in beside if found not in truths], exchange, outcome)
        return f"{'Yes' if truths[0].value else 'No'} ({truths[0].label}). {detail}".strip()
    measured = measured_in(exchange.result, clause, wanted.number.end, rest)
    have = number_of(measured.value) if measured is not None else None
    if measured is None or have is None:
        return None
    need = Decimal(wanted.number.text.replace(",", ""))
    true, relation = _related(have, wanted.relation, need)
    if (scale := scale_of(parts(measured.name))) != 1:
        # Told in millions, 68 is 68 million; whether the question's number is too, its own words tell.
        whole = _related(have * scale, wanted.relation, need)
        if whole != (true, relation) and scale_of(parts(clause.text[wanted.number.start : wanted.number.end])) == 1:
            return None
        true, relation = whole
    told = f"{subject}: {with_units(rest, [measured])[0]}" if subject else with_units(rest, [measured])[0]
    return f"{'Yes' if true else 'No'}. {told}, which is {relation} the {wanted.number.text} in your question."


def _related(have: Decimal, relation: Relation, need: Decimal) -> tuple[bool, str]:
    """Whether a figure stands to another as was asked, and how it stands to it."""
    match relation:
        case ">":
            return have > need, "more than" if have > need else "not more than"
        case ">=":
            return have >= need, "enough for" if have >= need else "less than"
        case "<":
            return have < need, "less than" if have < need else "not less than"
        case "<=":
            return have <= need, "not more than" if have <= need else "more than"
        case "=":
            return have == need, "exactly" if have == need else "not"
