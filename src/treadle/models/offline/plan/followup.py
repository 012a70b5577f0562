"""Follow-ups: "and for company 7?", "by account?", "and pears?" become the whole question that they stand for.

The earlier question is rewritten with the parts that the follow-up replaces; then it is planned like any other. Called
by `model`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.models.offline.grammar.arithmetic import find_arithmetic, is_chain
from treadle.models.offline.grammar.english import PERSON_WORDS, PLAIN_VERBS
from treadle.models.offline.grammar.meaning import is_idle, is_negation, is_turning
from treadle.models.offline.grammar.question import ASKING, Clause, Value, phrases, split_clauses
from treadle.models.offline.grammar.words import alike, groups_of, is_function_word, stem, tokens
from treadle.models.offline.plan.choice import ChosenTool
from treadle.models.offline.plan.conditions import conditions
from treadle.models.offline.plan.counterpart import Edit, counterpart, options_set
from treadle.models.offline.plan.dropping import dropped, leaving_out, without
from treadle.models.offline.plan.founded import values_in
from treadle.models.offline.plan.planner import Planner
from treadle.models.offline.plan.recorded import told_all
from treadle.models.offline.plan.structures import Mention, grouping_spans, groupings, mentions, overlaps
from treadle.models.offline.plan.switches import switched
from treadle.models.offline.plan.ties import PEOPLE
from treadle.models.offline.plan.transcript import LONGEST, Exchange, Turn

_ADDS = re.compile(r"^\W*(?:and|also|then|plus|same|another|likewise|next|now)\b", re.IGNORECASE)
_CORRECTS = re.compile(r"\b(?:actually|sorry|rather|instead|meant|mean|wait|correction|no)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^\W*(?:(?:and|or|but|then|now|ok|okay|also|so|what about|how about|same (?:thing )?(?:for|with|but)?|the same|"
    r"again|what if it (?:is|were))\b\W*)+",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:(?:and|then|now|also) )*(?:add|subtract|multiply|divide|double|halve|square|take|plus|minus|times)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|they|them|its|their|that one|those|these|he|she|his|her|him|(?<=from )there|(?<=to )there)\b",
    re.IGNORECASE,
)
# "Close them" is an order, and says nothing of the question before it.
_COMMANDS = re.compile(
    r"^\W*(?:please )?[a-z]+ (?:it|them|this|that|these|those|the|all|both|each|every)\b", re.IGNORECASE
)
_OF_THEM = re.compile(
    r"^\W*(?:and |but |so |then )*\w+(?: \w+)? (of (?:them|these|those)\b)(?! \w+s\b)",
    re.IGNORECASE,
)
_ONLY = re.compile(r"^\W*(?:and |but |now |ok |please )*(?:only|just)\b", re.IGNORECASE)
_WHOSE = ("my", "your", "his", "her", "its", "our", "their")
_SOMEBODY = re.compile(r"\b(?:he|she|his|her|him)\b", re.IGNORECASE)
_BY = re.compile(r"(?:by|per)\b", re.IGNORECASE)
_BACK = frozenset({"back", "backwards", "reverse", "reversed", "versa"})
_SHORT = 6


@dataclass(frozen=True, slots=True)
class Meant:
    """What a question stands for after those before it.

    `text` is the whole question, `rewritten` whether it is in other words than the person's, and `lost` the words of
    theirs that it does not hold and that nothing in the conversation explains.
    """

    text: str
    rewritten: bool = False
    lost: tuple[str, ...] = ()


def effective_question(turns: Sequence[Turn], planner: Planner) -> Meant:
    """What the last turn asks, with what it leaves to be understood from the turns before it."""
    meant = _alone(turns[0].question)
    for previous, turn in pairwise(turns):
        meant = _understood(meant.text, previous.exchanges, turn.question, planner)
    return meant


def _alone(question: str) -> Meant:
    """A question with nothing before it that was answered: then "of them" is of nothing."""
    match = _OF_THEM.match(question)
    return Meant(question, lost=(match[1],)) if match is not None else Meant(question)


def _is_the_opposite(earlier: str, question: str) -> bool:
    """Whether a word that was said before is denied now, or what was denied is not."""
    before, now = ({t.stem.removeprefix("un"): t.stem for t in tokens(text)} for text in (earlier, question))
    denied = [sum(is_negation(token.text) for token in tokens(text)) % 2 for text in (earlier, question)]
    shared = [word for word in before.keys() & now.keys() if not is_idle(word) and not is_negation(word)]
    return any((before[word] != now[word]) != (denied[0] != denied[1]) for word in shared)


def _understood(earlier: str, exchanges: Sequence[Exchange], question: str, planner: Planner) -> Meant:
    made = [exchange for exchange in exchanges if not exchange.failed]
    if max(len(earlier), len(question)) > LONGEST:
        return _alone(question)
    if not made:
        return _after_nothing(earlier, question, planner)
    if (match := _OF_THEM.match(question)) is not None and (
        _is_the_opposite(earlier, question) or not told_all(planner, Turn(earlier, [], list(exchanges)))
    ):
        # Of those that have not paid, nothing is known of what has; nor are some that were told of all there are.
        return Meant(question, lost=(match[1],))
    if is_chain(earlier) or (_GOES_ON.match(question) and find_arithmetic(earlier) is not None):
        # What goes on with a sum has no number of it in place of another.
        return Meant(question)
    if (field := dropped(question)) is not None:
        before = planner.box.read(earlier, planner.today)
        less = without(before, field, made, planner.box) or leaving_out(before, field, question, planner)
        again = planner.chooser.choose(planner.box.read(less, planner.today)) if less else None
        # What was done is not done once more, with less.
        told = again is not None and again.tool.change is None
        return Meant(less, True) if told else Meant(question, lost=("without",))
    bare = without_lead(question)
    clauses = split_clauses(bare)
    if not clauses:
        return Meant(question)
    subject = _somebody_told(made[-1], question, planner) or next(
        (v for e in reversed(made) for v in e.arguments.values() if isinstance(v, str) and v), None
    )
    if _names_another(planner.box.read(earlier, planner.today), made):
        subject = None
    clause = planner.box.read(clauses[0], planner.today)
    choice = planner.chooser.choose(clause)
    spoken = choice is not None and choice.spoken and not _is_breakdown(clause)
    commands = _COMMANDS.match(bare) is not None and clause.command not in (None, *PLAIN_VERBS)
    own, rest = [Meant(question)], []
    if subject is not None and not _narrowed(made):
        own = [*_with_pronoun(question, subject, planner), *own]
        if (
            choice is not None
            and spoken
            and not commands
            and any(param.shape == "text" for param in choice.filling.missing)
        ):
            rest.append(Meant(f"{bare.rstrip(' ?.!')} of {subject}?", True))
    words = [token for token in clause.tokens if not is_function_word(token.text)]
    led = bare != question.strip()
    if len(clauses) == 1 and not commands and (led or len(clause.tokens) <= _SHORT) and words:
        text = rewritten(planner.box.read(earlier, planner.today), clause, made, planner)
        if text and text != earlier and not _asks_of_a_change(question, text, planner):
            rest = [Meant(text, True, _lost(question, text, made, planner)), *rest]
    if (_ONLY.match(question) and clause.is_fragment) or (len(clauses) == 1 and _leans(question, clause, choice)):
        # "Only VIP ones", or "and EUR?", are some of those before, and never all that are so.
        # Whether there is such a question the lists tell, once they are read.
        whole = next((each for each in rest if not each.lost), Meant(question, lost=(clause.text,)))
        return _best([*own[:-1], *rest], planner) or whole
    return _best([*own, *rest] if spoken else [*rest, *own], planner) or Meant(question)


def _leans(question: str, clause: Clause, choice: ChosenTool | None) -> bool:
    """Whether a follow-up says only what is to be other, as "and EUR?" does, and not what is asked for."""
    asks = clause.command is not None or ASKING.search(clause.text) is not None
    return (
        _ADDS.match(question) is not None and not asks and not (choice and choice.spoken and choice.filling.arguments)
    )


def _after_nothing(earlier: str, question: str, planner: Planner) -> Meant:
    """A follow-up to a question for which nothing was called: what only says what is to be other is asked of that."""
    clauses = split_clauses(without_lead(question))
    clause = planner.box.read(clauses[0], planner.today) if len(clauses) == 1 else None
    if clause is None or not _leans(question, clause, planner.chooser.choose(clause)):
        return _alone(question)
    text = rewritten(planner.box.read(earlier, planner.today), clause, [], planner)
    again = planner.chooser.choose(planner.box.read(text, planner.today)) if text else None
    if not text or text == earlier or (again is not None and again.tool.may_change):
        # What was not done is not done now either, of something else.
        return Meant(question, lost=(clause.text,))
    return Meant(text, True)


def _somebody_told(made: Exchange, question: str, planner: Planner) -> str | None:
    """Whom "she" means where somebody was asked for: the one who was told, and not the one who was named."""
    tool = planner.box.named(made.tool)
    people = {stem(word) for word in PERSON_WORDS | PEOPLE}
    told = (
        made.result
        if isinstance(made.result, str) and re.fullmatch(r"[^\W\d]\w*(?: [^\W\d]\w*)?", made.result)
        else None
    )
    asked = tool is not None and bool(people & set(tool.name_stems))
    return told if asked and _SOMEBODY.search(question) is not None else None


def _names_another(earlier: Clause, made: Sequence[Exchange]) -> bool:
    """Whether the question before names what nothing was called with: then "it" may be that."""
    told = {str(value).lower() for each in made for value in (*each.arguments.values(), *values_in(each.result))}
    names = [value.text.lower() for value in earlier.values if value.kind == "name"]
    return any(not any(name in text or text in name for text in told if text) for name in names)


def _asks_of_a_change(question: str, text: str, planner: Planner) -> bool:
    """Whether a question, or what may correct what was done, would become a command: "and to 4713?" after a transfer is
    no order to make another, nor is "actually, 5 days" one to borrow a thing once more."""
    if not question.rstrip().endswith("?") and _ADDS.match(question) and not _CORRECTS.search(question):
        return False
    choice = planner.chooser.choose(planner.box.read(text, planner.today))
    return choice is not None and choice.tool.change is not None


def _best(candidates: Sequence[Meant], planner: Planner) -> Meant | None:
    """The first of the readings that can be answered whole with the fewest words left over; else one that lost some."""
    weighed = [(planner.spare_words(each.text), each) for each in candidates if not each.lost]
    whole = [(spare, each) for spare, each in weighed if spare is not None]
    if whole:
        return min(whole, key=lambda pair: pair[0])[1]
    return next((each for each in candidates if each.lost and planner.is_plannable(each.text)), None)


def _narrowed(made: Sequence[Exchange]) -> bool:
    """Whether the question before was asked under conditions, which a question of one's own would lose."""
    return any(isinstance(value, list | dict) and value for value in made[-1].arguments.values())


def _lost(question: str, text: str, made: Sequence[Exchange], planner: Planner) -> tuple[str, ...]:
    """The words of a follow-up that the question it was made into does not hold."""
    held = {token.stem for token in tokens(text)}
    lead = _LEAD.match(question)
    rest = [token for token in tokens(question) if lead is None or token.start >= lead.end()]
    free = [token for token in rest if not is_idle(token.text) and token.low not in ("only", "just")]
    told = frozenset(word for e in made if (tool := planner.box.named(e.tool)) is not None for word in tool.told)
    return tuple(t.text for t in free if t.stem not in held and (is_turning(t.text) or not _speaks(t.stem, told)))


def _speaks(word: str, told: frozenset[str]) -> bool:
    return any(alike(word, other) >= 0.8 for other in told)


def _with_pronoun(question: str, subject: str, planner: Planner) -> list[Meant]:
    """The question with "it", "she" or "there" replaced by what the last call was about, if that fills an argument."""
    found: list[Meant] = []
    for match in _PRONOUN.finditer(question):
        owned = "'s" if match[0].lower() in ("its", "their", "his") else ""
        named = f"{question[: match.start()]}{subject}{owned}{question[match.end() :]}"
        choice = planner.chooser.choose(planner.box.read(named, planner.today))
        if (
            choice is not None
            and subject.lower() in [str(value).lower() for value in choice.filling.arguments.values()]
        ) or (choice is not None and any(param.shape == "text" for param in choice.filling.missing)):
            found.append(Meant(named, True))
    return found


def _is_breakdown(clause: Clause) -> bool:
    """Whether the clause is no more than "which accounts?" or "by account?"."""
    words = [token for token in clause.tokens if not is_function_word(token.text)]
    opening = clause.tokens[0].low if clause.tokens else ""
    return len(words) <= 2 and opening in ("by", "per", "which", "for")


def without_lead(question: str) -> str:
    """A follow-up without the words that only lead it in, such as "and" or "what about"."""
    return _LEAD.sub("", question).strip()


def rewritten(earlier: Clause, follow: Clause, made: Sequence[Exchange], planner: Planner) -> str:
    """The earlier question with what a follow-up puts in the place of its parts, or adds; empty if it does neither."""
    edits: list[Edit] = []
    extra: list[str] = []
    used: list[tuple[int, int]] = []
    for said in conditions(follow, (), []):
        there = conditions(earlier, (said.field,), [])
        if there and said.op in ("=", "in") and there[0].op in ("=", "in"):
            edits.append(Edit(there[0].values[0].start, there[0].end, follow.text[said.values[0].start : said.end]))
        elif there:
            edits.append(Edit(there[0].start, there[0].end, follow.text[said.start : said.end]))
        else:
            extra.append(f"{'for ' if said.op in ('=', 'in') else ''}{follow.text[said.start : said.end]}")
        used.append((said.start, said.end))
    breakdown = groupings(follow, planner.vocabulary.names(["dimension"]))
    if breakdown:
        edits += [Edit(*span, "") for span in _broken_down(earlier, planner)]
        extra.append("by " + " and ".join(breakdown))
    for start, end in options_set(earlier, follow, made, planner, used):
        extra.append(f"with {follow.text[start:end]}")
        used.append((start, end))
    free = [value for value in follow.values if not overlaps(value.start, value.end, used)]
    for chosen, replaced in [] if breakdown else _choices(earlier, follow, made, planner):
        value = Value(chosen.written, "phrase", chosen.start, chosen.end)
        if replaced is None:
            extra.append(f"{_led_in(follow, value)} {chosen.written}".removeprefix("for "))
        else:
            edits.append(Edit(replaced.start, replaced.end, chosen.written))
        used.append((chosen.start, chosen.end))
    for start, end in _switched(follow, made, planner):
        extra.append(follow.text[start:end].lower())
        used.append((start, end))
    spans = list(used)
    told = {word for tool in planner.box.tools for word, weight in tool.weights.items() if weight >= 1.0}
    asking = frozenset(t.stem for t in follow.tokens if groups_of(t.stem) or t.stem in told)
    nouns = () if breakdown else phrases(follow, asking, units=True)
    nouns = tuple(noun for noun in nouns if not _is_counted_before(earlier, follow, noun))
    if any(follow.words_before(noun.start, 1) in [(word,) for word in _WHOSE] for noun in nouns):
        # "Her address" is something of hers, and takes the place of nobody.
        return ""
    free = [value for value in free if not overlaps(value.start, value.end, spans)]
    for value in [*free, *(noun for noun in nouns if not overlaps(noun.start, noun.end, spans))]:
        place = counterpart(earlier, follow, value, made, planner)
        if place is None:
            extra.append(f"{_led_in(follow, value)} {value.text}")
        elif not any(place.start < edit.end and edit.start < place.end for edit in edits):
            edits.append(place)
    if (not edits and not extra) or _goes_back(earlier, follow, edits):
        return ""
    text = earlier.text
    for edit in sorted(edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return " ".join([text.rstrip(" ?.!"), *extra])


def _broken_down(earlier: Clause, planner: Planner) -> list[tuple[int, int]]:
    """Where a question says by what it is broken down, each stretch with the blanks before it."""
    found: list[tuple[int, int]] = []
    for _, start, end in grouping_spans(earlier, planner.vocabulary.names(["dimension"])):
        if (found and found[-1][1] == start) or _BY.match(earlier.text, start):
            found.append((len(earlier.text[:start].rstrip()), end))
    return found


def _goes_back(earlier: Clause, follow: Clause, edits: Sequence[Edit]) -> bool:
    """Whether a follow-up puts no word in the place of one: "and back?", or "from Holiday" after "from Rent to
    Holiday", or "and the mart only?" after a comparison with the mart."""
    for edit in filter(lambda each: each.text, edits):
        words = r"[\W_]+".join(map(re.escape, re.split(r"[\W_]+", edit.text)))
        again = re.finditer(rf"(?<!\w){words}(?!\w)", earlier.text, re.IGNORECASE)
        if any(not any(at.start() < each.end and each.start < at.end() for each in edits) for at in again):
            return True
    return any(token.low in _BACK for token in follow.tokens)


def _choices(
    earlier: Clause, follow: Clause, made: Sequence[Exchange], planner: Planner
) -> list[tuple[Mention, Mention | None]]:
    """The words of a follow-up that are values which the tools of the question before it offer to choose from, each
    with the one of the same choice that the question before it named."""
    tools = [tool for exchange in made if (tool := planner.box.named(exchange.tool)) is not None]
    found: list[tuple[Mention, Mention | None]] = []
    for param in [param for tool in tools for param in tool.params if param.enum]:
        names = [str(name) for name in param.enum if isinstance(name, str)]
        said, there = mentions(follow, names, least=0.9), mentions(earlier, names, least=0.9)
        if len(said) == 1 and said[0] not in [each for each, _ in found]:
            found.append((said[0], there[0] if len(there) == 1 else None))
    return found


def _switched(follow: Clause, made: Sequence[Exchange], planner: Planner) -> list[tuple[int, int]]:
    """Where a follow-up names what the tools of the question before it switch: "only part-time"."""
    tools = [tool for exchange in made if (tool := planner.box.named(exchange.tool)) is not None]
    said = [switched(param, follow) for tool in tools for param in tool.params if param.shape == "boolean"]
    return [(min(spans)[0], max(spans)[1]) for _, spans in filter(None, said)]


def _is_counted_before(earlier: Clause, follow: Clause, noun: Value) -> bool:
    """Whether a noun behind a number only says again what is counted: the nights of "and for 2 nights?"."""
    behind = any(v.kind == "number" and follow.text[v.end : noun.start] == " " for v in follow.values)
    return behind and {token.stem for token in tokens(noun.text)} <= {token.stem for token in earlier.tokens}


def _led_in(follow: Clause, value: Value) -> str:
    """The words right before a value that say how it belongs to the question: "in the", "before"."""
    led: list[str] = []
    for word in follow.words_before(value.start, 3):
        if not (is_function_word(word) or is_turning(word)) or word in ("and", "or", "only", "just", "what", "how"):
            break
        led.insert(0, word)
    return " ".join(led) if led and led != ["the"] else "for"
