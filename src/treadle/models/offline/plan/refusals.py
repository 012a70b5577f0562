"""What must not go into an argument although it would fit, as the question would then be another one."""

import re
from collections.abc import Sequence
from typing import Any

from treadle.models.offline.grammar.currencies import SIGNS, currency_of, money_in
from treadle.models.offline.grammar.english import PERSON_WORDS, word_set
from treadle.models.offline.grammar.meaning import IDLE_VERBS, is_idle, is_negation
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import alike, is_function_word, is_verb, parts, singular, stem, tokens
from treadle.models.offline.plan.addresses import is_no_address, takes_address
from treadle.models.offline.plan.affinity import direction, is_currency
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool, Param

Span = tuple[int, int]

_CONDITION = re.compile(
    r"\b(?:under|over|above|below|between|up to|at (?:most|least)|"
    r"(?:more|less|fewer|cheaper|greater|higher|lower) than|"
    r"before|after|since|until)\s+[$€£]?\d|"
    r"\b(?:from|since|in|during|until|before|after)\s+(?:the\s+)?(?:last|next|this|past|previous|"
    r"yesterday|today|tomorrow)\b",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"^\W*(?:(?:what|which|how)(?:['’]s| is| are)|(?:list|show|give me|tell me)(?: all| me)?) the (\w+)\W*$",
    re.IGNORECASE,
)
# The things that are to be found, or said.
_WANTED = re.compile(
    r"^\W*(?:please )?(?:find|list|show|get|give me|tell me|search|which|what)(?: me)?(?: all| the| our| my)* (\w+)\b",
    re.IGNORECASE,
)
_SORT = re.compile(
    r"^\W*(?:please )?(?:find|list|show|get|give me|tell me|search|which|what|how many)"
    r"(?: me)?(?: are)?(?: all| the| our| my)* ([a-z-]+) (\w+s)\b",
    re.IGNORECASE,
)
_OWNED = (("of",), ("for",), ("by",), ("from",))
_ASKS_WHICH = re.compile(
    r"^\W*(?:(?:and|so|then|in|on|at|for|to|of|from|by|with) )*(?:who|which|whose)\b", re.IGNORECASE
)
_WHICH_ONE = re.compile(
    r"^\W*(?:(?:of|in|at|for|on|to|from) )?which (\w+) "
    r"(?:has|have|had|is|was|does|did|can|will|contains?|holds?|owns?|gets?)\b",
    re.IGNORECASE,
)
_ALONE = word_set("only both solely exclusively merely alone")
_DOERS = frozenset(stem(word) for word in sorted(PERSON_WORDS | word_set("by author writer artist maker")))
_EVERY = word_set("all every any everything everyone everybody everywhere anything anyone anybody")
_STEPS = word_set("raise increase lift cut reduce lower decrease discount boost")
_STEP_NAMES = word_set("by increment delta step")
_LASTING = word_set("top renew extend prolong lengthen delay postpone")
_WHOSE = word_set("my your his her their our")
_BESIDE = re.compile(r"^(?:(?!\b(?:to|as|with|for|by)\b).)*\band ((?:its|his|her|their) [\w-]+)", re.IGNORECASE)
_REACHED = frozenset(stem(word) for word in word_set("address email mail phone telephone iban"))
_BESIDE_IT = word_set("with against about under")
# "The one on railways", "the bike in R1": what lies there is not called so.
_THE_ONE = re.compile(
    r"(?:\bones? (?:that (?:is|was|are|were) )?(?:of|with|about|for|on|in|at|from|under|behind|beside|near)|"
    r"\bthe (?!ones?\b)(\w+) (?:on|in|at|from|under|behind|beside|near)) (?:(?:the|an?|my|our) )?$",
    re.IGNORECASE,
)
_SPANS = word_set("second minute hour day night week month year")
_MANY_SPANS = frozenset(f"{span}s" for span in _SPANS)
_EACH = word_set("per each unit apiece")
_SINCE, _UNTIL = word_set("from since after"), word_set("until till through")
_CALLED_BY = tuple((stem(word),) for word in ("id", "ids", "number", "no", "nr", "code"))
_LISTING = word_set("list find search query filter show")
_BY = word_set("percent percentage pct amount by increment delta step")


_RESETTING = word_set("set change update modify edit rename adjust assign reassign move transfer switch")
_COUNTED = re.compile(r"\bhow many (?:[a-z]+ )?$", re.IGNORECASE)


def is_strange(tool: KnownTool, param: Param, value: Value, clause: Clause) -> bool:
    """Whether a value is not what a parameter takes, but what that belongs to, or is to become.

    In "cancel the order of Meier" the name is no order, in "raise the salary to 50000" the number no percentage.
    """
    if tool.change is None:
        return (
            _is_owner(param, value, clause) or _is_attribute(tool, value, clause) or _is_no_currency(tool, param, value)
        )
    before = clause.words_before(value.start, 2)
    if value.kind == "number" and before[:1] == ("by",) and clause.opening not in _LASTING:
        # "Change the price by 1 euro" does not say what it is to be.
        stepped = _BY & set(parts(param.name)) and (clause.opening in _STEPS or _STEP_NAMES & set(parts(param.name)))
        told = f"{param.description} {tool.spec.description}"
        return not stepped and re.search(r"\bby how (?:much|many)\b|\bby\b", told) is None
    where = _THE_ONE.search(clause.text[max(0, value.start - 40) : value.start])
    where = where if tool.may_change and value.kind not in ("period", "time") else None
    if where is not None and (where[1] is None or stem(where[1].lower()) in param.nouns):
        return True
    named = set(parts(param.name))
    if value.kind == "number" and before[:1] == ("for",) and named & _EACH:
        # "Sell 20 tonnes for 210" does not say that each costs so much.
        return True
    if value.kind == "number":
        steadily = bool({clause.command, clause.opening} & _STEPS)
        steps = _BY if steadily else _MANY_SPANS if clause.opening in _LASTING else frozenset[str]()
        return before[:1] == ("to",) and bool(named & steps)
    if value.kind == "period" and before[:1]:
        # What is suspended from a day on is not so until then.
        return direction(param) == ("to" if before[0] in _SINCE else "from" if before[0] in _UNTIL else None)
    if value.kind not in ("name", "phrase"):
        return False
    if takes_address(tool, param) or is_no_address(tool, param, value.text):
        return True
    described = before[:1] == ("the",) or (before[:1] and before[0] in _WHOSE)
    led = before[1:] in (("of",), ("for",), ("to",))
    if value.kind == "phrase" and described and led and param.nouns == (stem("name"),):
        # Nobody is called "the manager".
        return True
    after = next((token for token in clause.tokens if token.start >= value.end), None)
    if param.stems[-1:] == ("id",) and value.kind == "phrase" and after is not None and after.stem in param.nouns:
        # "The contaminated sample" says which one it is, and is no identifier.
        return True
    if value.kind == "phrase" and before[:1] and before[0] in _WHOSE:
        # "My brother" is nobody's name, "my office" no address.
        return "name" in param.description or bool(_REACHED & set(param.nouns))
    sole = sum(other.shape == "text" for other in tool.required) == 1
    if sole and before[:1] == ("by",) and param.stems[-1:] != ("by",) and not set(param.nouns) & _DOERS:
        # "A song by Nena" says whose it is, and not which.
        return True
    if sole and before[:1] and before[0] in _BESIDE_IT and not _speaks_of(tool, param, before[0]):
        # "The session with Rio" is one that he takes part in, and may be another's.
        return True
    owner = re.match(r"['’]s? ", clause.text[value.end :]) and clause.words_after(value.end + 2, 1)
    whose = before[1:] if before[:1] in _OWNED else owner or ()
    own = any(stem(word) in (*param.nouns, *(param.words if owner else ())) for word in whose)
    if own and not owner and not {*param.nouns} & {*param.stems}:
        # "A vote for Ramos", to a tool that counts "a vote for a candidate" and takes a name.
        own = re.search(rf"\b{re.escape(before[1])} {before[0]} an? ", tool.spec.description.lower()) is None
    return own or (param.stems[-1:] == ("id",) and before[:1] in _OWNED)


def _speaks_of(tool: KnownTool, param: Param, word: str) -> bool:
    """Whether a tool leads something with a preposition, or a parameter is called by it."""
    told = f"{tool.spec.description} {param.description} {' '.join(parts(param.name))}"
    return word in {token.low for token in tokens(told)}


def _is_no_currency(tool: KnownTool, param: Param, value: Value) -> bool:
    """Whether a name is that of no currency, where a parameter takes one by its code: of "10 EUR in the currency of
    Peru" it is the country's."""
    examples = [text for each in tool.params if "currency" in each.words for text in each.examples]
    coded = bool(examples) and all(re.fullmatch(r"[A-Z]{3}", text) for text in examples)
    named = value.kind in ("name", "phrase") and currency_of(value.text.split()[-1].lower()) is None
    return coded and named and "currency" in param.words


def _is_attribute(tool: KnownTool, value: Value, clause: Clause) -> bool:
    """Whether plain words only say which of what a tool speaks of are meant, as "free" in "How many free spaces are
    there?": nothing is called by that."""
    after = next((token for token in clause.tokens if token.start >= value.end), None)
    beside = after is not None and clause.text[value.end : after.start] == " " and after.stem in tool.told
    beside = beside and after is not None and not is_function_word(after.text)
    counted = _COUNTED.search(clause.text[: value.start]) is not None
    own = all(token.stem in tool.told for token in tokens(value.text))
    return value.kind == "phrase" and value.text.islower() and own and (beside or counted)


def _is_owner(param: Param, value: Value, clause: Clause) -> bool:
    """Whether a name is that of whoever has what a parameter takes: of "Ada Poe's orders" it is none."""
    owned = re.match(r"['’]s? ", clause.text[value.end :])
    after = clause.words_after(value.end + 2, 1)
    return value.kind == "name" and bool(owned and after) and after[0] != stem(after[0]) == param.nouns[-1]


def is_of_many(tool: KnownTool, param: Param, value: Value, clause: Clause) -> bool:
    """Whether words say which of many are meant, to a tool that must be told one: "the unpaid orders", "all leads"."""
    after = next((token for token in clause.tokens if token.start >= value.end), None)
    if not param.required or value.kind not in ("phrase", "number"):
        return False
    if after is None or singular(after.low) == after.low:
        return clause.words_before(value.start, 1) == ("all",) and value.kind == "phrase"
    called = {token.low for token in tokens(f"{' '.join(parts(tool.name))} {tool.spec.description}")}
    if value.kind == "number":
        # "Shred 3 boxes" is not the box that is called 3, and "Plant 3 trees" the order to one that plants trees.
        one = after.low not in called or "array" in param.types
        return one and param.stems[-1:] in _CALLED_BY and after.stem in (*param.nouns, *tool.told)
    one = after.low not in called and parts(tool.name)[0] not in _LISTING
    return after.stem in param.nouns or (one and after.stem in tool.told)


def is_conditional(text: str) -> bool:
    """Whether words to search for hold a condition, which no search understands: "kettles, but not red ones"."""
    return _CONDITION.search(text) is not None or any(is_negation(word) for word in re.findall(r"[^\W\d][\w'’]*", text))


def done_to_another(clause: Clause, used: Sequence[Span]) -> list[Span]:
    """The verb of what one does to another, which does not tell a command who is who; and what is done to beside it.

    Of "Record that Eva adopts Mia" either may be the animal, as the names went into arguments in their order. "Move the
    desk and its lamp to R2" moves two things.
    """
    names = [v for v in clause.values if v.kind == "name" and overlaps(v.start, v.end, used)]
    ends, starts = {value.end for value in names}, {value.start for value in names}
    text = clause.text
    beside = [span for m in _BESIDE.finditer(text) if not overlaps(*(span := m.span(1)), used)]
    return beside + [
        (token.start, token.end)
        for token in clause.tokens
        if len(text[: token.start].rstrip()) in ends
        and len(text) - len(text[token.end :].lstrip()) in starts
        and not is_function_word(token.text)
        and not overlaps(token.start, token.end, used)
    ]


def done_to_many(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The things of which a command takes one, where many are meant that it was not told: "Add Nova's songs to Gym"."""
    takes = {word for tool in tools for param in tool.required for word in param.nouns}
    takes |= {word for tool in tools if tool.change is not None for word in tool.name_stems[1:]}
    wording = {word.low for tool in tools for word in tokens(tool.spec.description)}
    found: list[Span] = []
    for place, token in enumerate(clause.tokens):
        many = token.stem in takes and singular(token.low) != token.low and token.low not in wording
        if token.low in _EVERY and token.low not in wording and not overlaps(token.start, token.end, used):
            found.append((token.start, token.end))
        near = clause.tokens[max(0, place - 1) : place] + clause.tokens[place + 1 : place + 2]
        near = tuple(each for each in near if each.low != "of")
        if many and not any(overlaps(each.start, each.end, used) for each in near):
            found += [] if overlaps(token.start, token.end, used) else [(token.start, token.end)]
        elif many and re.search(r"['’]s?\s+$", clause.text[: token.start]):
            found.append((token.start, token.end))
    return found


def of_another_thing(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The thing that is asked for, where a tool lists things of another name that begins with it.

    "What is the weather?" does not ask for weather warnings, nor "List the employees" for their birthdays.
    """
    match = _WANTED.match(clause.text)
    if match is not None and not overlaps(*match.span(1), used) and all(_only_before(match[1], t) for t in tools):
        return [match.span(1)]
    if (other := _of_another_sort(clause, tools, used)) is not None:
        return [other]
    match = _ASKED_FOR.match(clause.text)
    if match is None or used:
        return []
    asked = stem(match[1])
    for tool in tools:
        *_, kind, head = ("", "", *parts(tool.name))
        alone = [word for word in tokens(tool.spec.description) if word.stem == asked]
        heads = [word for word in alone if not tool.spec.description[word.end :].lstrip().lower().startswith(head)]
        if stem(kind) == asked != stem(head) and singular(head) != head and not heads:
            return [match.span(1)]
    return []


def _of_another_sort(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> Span | None:
    """The word that says which of many are wanted, of a tool that has others of them in its name: of "the even numbers"
    `prime_numbers` has none."""
    match = _SORT.match(clause.text)
    if match is None or overlaps(*match.span(1), used) or is_idle(match[1]) or is_function_word(match[1]):
        return None
    said = {token.stem for token in clause.tokens}
    for tool in tools:
        *_, sort, head = ("", "", *tool.name_stems)
        if head != stem(match[2]) or not sort or is_verb(parts(tool.name)[-2]):
            continue
        if sort not in said and stem(match[1]) not in tool.weights and not any(alike(sort, each) for each in said):
            return match.span(1)
    return None


_OF_SOME = re.compile(
    r"^\W*(?:(?:and|so|please|tell me|show me|list|then) )*(?:how many|which|who|what)\b", re.IGNORECASE
)
_OF_THOSE = re.compile(
    r"(?i)\w(?<!\bme)(?<!\bus) (?:who|that|which) (?:(?:are|were) \w+s|(?:is|was) an? \w+)\W*$|"
    r"\b(?:which|how many|what) [\w-]+ (?:have|has) (?:(?:an?|any|some) )?\w+\W*$"
)
_HERE = word_set("us me you there here now today please currently then right")
_AUXILIARIES = word_set("do does did can could will would should may might must")
_BE = word_set("is are was were be been being isn't aren't wasn't weren't not to still already all both")
_THERE = word_set("have has had got exist exists present")


def true_of_all(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """A verb that else changes nothing, where it says what those that are asked for do or are: "How many flats are
    let?" and "Which guests work?" ask for some of them; so does what they are or have: "staff who are managers"."""
    last = clause.tokens[-1]
    if _OF_THOSE.search(clause.text) is not None and not overlaps(last.start, last.end, used):
        return [] if any(last.stem in tool.name_stems for tool in tools) else [(last.start, last.end)]
    if _OF_SOME.match(clause.text) is None or any(token.low in _AUXILIARIES for token in clause.tokens):
        return []
    words = [token for token in clause.tokens if token.low not in _HERE]
    if len(words) < 2 or overlaps(words[-1].start, words[-1].end, used):
        return []
    lead, last = words[-2:]
    things = {stem for tool in tools for stem in tool.name_stems}
    predicate = lead.low in _BE or lead.low in ("who", "which", "that") or lead.stem in things
    own = last.stem in {word for tool in tools for word in tool.told}
    said = last.low in IDLE_VERBS and last.low not in _THERE and not own
    return [(last.start, last.end)] if predicate and said else []


def _only_before(thing: str, tool: KnownTool) -> bool:
    """Whether a tool speaks of a thing only to say of what kind another one is: a "mail address" is no mail."""
    asked = stem(thing.lower())
    said = [list(tokens(tool.spec.description)), list(tokens(" ".join(parts(tool.name))))]
    after = [([*words, None])[at + 1] for words in said for at, word in enumerate(words) if word.stem == asked]
    kinds = [word is not None and is_plain_noun(word.text, word.stem) for word in after]
    told = {word for p in tool.params for word in p.stems} | {word for each in tool.outputs for word in each.stems}
    return bool(kinds) and all(kinds) and singular(thing.lower()) != thing.lower() and asked not in told


def in_other_money(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The currency of an amount, where the tools take amounts in another one, or in one that they are told beside it.

    "Transfer 50 dollars" is no order to a tool that transfers euros.
    """
    texts = [text for tool in tools for text in (tool.spec.description, " ".join(parts(tool.name)))]
    texts += [text for tool in tools for p in tool.params for text in (p.description, " ".join(parts(p.name)))]
    known = {code for text in texts for _, _, code in money_in(text)}
    amounts = [(value.start, value.end) for value in clause.values if value.kind == "number"]
    asked = any(is_currency(param) for tool in tools for param in tool.params)
    found: list[Span] = []
    for start, end, code in money_in(clause.text):
        # The sign before a number, or behind it, is no word of its own.
        apart = [
            len(clause.text[:start]) - len(clause.text[:start].rstrip()),
            len(rest := clause.text[end:]) - len(rest.lstrip()),
        ]
        near = (start - 1 - apart[0], end + 1 + apart[1]) if clause.text[start:end] in SIGNS else (start, end)
        beside = [span for span in used if overlaps(*near, [span]) and overlaps(*span, amounts)]
        if beside and (start, end) not in used and (asked or (known and code not in known)):
            found.append((start, end))
    return found


def and_nothing_else(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """A word by which nothing else, or two things at once, must be so: who plays only tennis is not whoever does."""
    told = {word.low for tool in tools for word in tokens(tool.spec.description)}
    filtered = any(param.shape in ("filters", "mapping") for tool in tools for param in tool.params)
    if filtered or not _ASKS_WHICH.match(clause.text):
        return []
    alone = [token for token in clause.tokens if token.low in _ALONE - told]
    return [(token.start, token.end) for token in alone if not overlaps(token.start, token.end, used)]


def of_which_one(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The thing of which a tool must be told one, where that is what is asked for: "Which form has Maths?"."""
    match = _WHICH_ONE.match(clause.text)
    needed = {word for tool in tools for param in tool.required for word in param.nouns}
    if match is None or not used or stem(match[1]) not in needed or overlaps(*match.span(1), used):
        return []
    return [match.span(1)]


def shared_number(tool: KnownTool, filling: Filling, clause: Clause) -> str:
    """The number, if any, that a call for each of several things would be given again and again."""
    if "each" in clause.text.lower():
        return ""
    spread = {value.text for value in filling.spread}
    free = [v.text for v in clause.values if v.kind == "number" and not overlaps(v.start, v.end, filling.used)]
    if free and any(param.shape == "number" and param.required for param in filling.missing):
        # As in "Pay Ann and Ben 50".
        return free[0]
    numbers = [
        str(filling.arguments[p.name])
        for p in tool.params
        if p.shape == "number"
        and p.name in filling.arguments
        and not _is_of_each(p, str(filling.arguments[p.name]), clause)
    ]
    return next((number for number in numbers if number not in spread), "")


def _is_of_each(param: Param, number: str, clause: Clause) -> bool:
    """Whether a number says to which thing several are taken, "into sprint 13", or how long each lasts, "for 3 hours":
    it is not to be shared."""
    noun = parts(param.name)[-1]
    if re.search(rf"\b(?:to|into|in|at|on) (?:the )?{noun} {re.escape(number)}\b", clause.text, re.IGNORECASE):
        return singular(noun) == noun and "number" not in param.types
    lasting = re.search(rf"\bfor {re.escape(number)} (\w+)", clause.text, re.IGNORECASE)
    return lasting is not None and singular(lasting[1].lower()) in _SPANS


def sets_what_is(tool: KnownTool, param: Param, clause: Clause, asked: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether a change would set something to what it is, as nothing says to what else: "Change the owner of Nordlys".

    Args:
        tool: the tool that is to be called.
        param: what was looked up for it.
        clause: the order.
        asked: what it was looked up with.
        given: what the tool is to be called with besides.
    """
    setting = (tool.change or frozenset()) & _RESETTING and clause.opening in _RESETTING
    same = any(value in given.values() for value in asked.values())
    return bool(setting) and same and not {"id", "number"} & {*param.stems[-1:]}
