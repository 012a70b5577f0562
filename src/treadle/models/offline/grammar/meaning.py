"""Which words change nothing, and which turn a question into another one: the stated lists of the account.

Data, and the phrases that are more than their words. A word on none of these lists must be what a tool, an argument or
a filter speaks of; see `treadle.models.offline.plan.account`.
"""

import re
from collections.abc import Iterable

from treadle.models.offline.grammar.english import FUNCTION_WORDS, MONTHS, WEEKDAYS, word_set

NEGATIONS = word_set(
    "not no nor neither never none nobody nothing without except excepting excluding exclude excludes excluded unless "
    "instead ignore ignoring ignored besides omit omitting cannot minus ohne nicht kein keine keinen keiner außer "
    "ausser weder statt"
)
"""Words that say what is not meant. A tool's own words never account for them."""

STRUCTURAL = word_set(
    """or either oder if wenn but rather other others another else more less fewer most least than over under above
    below beyond exceeding beneath since until till before after while per exactly sort sorted ranked ranking top bottom
    descending ascending higher lower outside plus"""
)
"""Words that say how the others belong together. Only an argument accounts for them, never a tool's own words."""

TIMES = word_set(
    """morning afternoon evening noon midnight
    during ago next last past previous former recent first second third latest earliest newest oldest tomorrow
    yesterday tonight today weekly monthly yearly annual annually daily hourly quarterly quarter ytd year years month
    months week weeks weekend weekday weekdays ahead again still yet already nach bis seit"""
)
"""Words that say when, or which of several."""

TURNING = (
    NEGATIONS
    | STRUCTURAL
    | TIMES
    | word_set(
        """same via through every about around approximately roughly nearly almost twice half double triple dozen
        dozens hundred hundreds thousand thousands million millions billion couple several few pair apart apiece
        together respectively individually singly zwischen
        off against"""
    )
)
"""Words that change what is asked: kinds of amounts, times, comparisons, alternatives, conditions."""

COMPUTING = word_set(
    """average mean median sum total maximum minimum max min largest smallest biggest highest lowest greatest cheapest
    difference growth increase decrease change ratio share percentage percent proportion fraction trend forecast
    variance deviation cumulative running absolute relative net gross rounded round compound weighted unique distinct
    best worst range grow grew grown growing rise rose risen fall fell fallen drop dropped develop developed evolve
    factorial square cube cubic squared root power modulo remainder"""
)
"""Words that ask for a computation; only a tool that speaks of it itself can do it."""

_SOMEBODY = word_set(
    "person people employe staff customer client author owner user member colleagu borrower sender recipient "
    "contact assigne manager by passenger attende"
)
_OPPOSITES = tuple(
    (word_set(one), word_set(other))
    for one, other in (
        (
            "arrive arrives arrived arriving arrival arrivals",
            "depart departs departure departures leave leaves leaving",
        ),
        ("free vacant empty unoccupied", "occupied taken full"),
        ("bought buy buys purchased purchases", "sold sell sells sale sales"),
        ("imported imports import", "exported exports export"),
        ("incoming inbound received receipts", "outgoing outbound sent shipped"),
        ("won win wins winner", "lost lose loses loser losses"),
        ("debit debits", "credit credits"),
        ("asset assets", "liability liabilities"),
        ("receivable receivables", "payable payables"),
        ("open opened opens", "closed closes closing done finished completed resolved"),
        ("borrowed lent", "returned available"),
        ("income revenue", "expense expenses costs"),
    )
)


def opposites_of(word: str) -> frozenset[str]:
    """The words that say the opposite of a word, as departures are none of the trains that arrive."""
    sides = [pair[::way] for pair in _OPPOSITES for way in (1, -1)]
    return frozenset().union(*(other for one, other in sides if word in one))


ASKED_FOR = {
    "who": _SOMEBODY,
    "whose": _SOMEBODY,
    "when": word_set(
        "dat date day time start end du due deadlin month year period schedul hour until since week open opening at"
    ),
    "where": word_set(
        "plac place city location address stor store room country region sit warehous shelf branch building path fil "
        "link zon area origin destination"
    ),
    "why": word_set("reason caus explain explan diagnos diagnosi differ differenc compar discrepancy deviation"),
}
"""Words that ask for one kind of thing at the start of a question, and the stems of which a tool has to tell some."""

_SAME_UNITS = tuple(
    word_set(line)
    for line in """
    km kilometer kilometers kilometre kilometres
    mile miles
    meter meters metre metres
    foot feet
    inch inches
    cm centimeter centimeters
    mm millimeter millimeters millimetre millimetres
    yard yards
    kg kilo kilos kilogram kilograms
    gram grams
    pound pounds
    ounce ounces
    ton tons tonne tonnes
    liter liters litre litres
    gallon gallons
    celsius
    fahrenheit
    kelvin
    minute minutes
    hour hours
    second seconds
    day days
    euro euros eur
    dollar dollars usd
    yen
    franc francs
    percent
    """.strip().splitlines()
)
_SUPERLATIVE = re.compile(
    r"[a-z]{3,}(?<!for)(?<!inter)(?<!qu)(?<!gu)(?<!cont)(?<!harv)(?<!prot)(?<!dig)(?<!mod)(?<!hon)est"
)
_NO_SUPERLATIVES = word_set(
    "request conquest bequest inquest chest crest quest guest invest divest suggest digest ingest manifest attest "
    "arrest tempest midwest northwest southwest nest pest vest wrest earnest"
)


def is_computing(word: str) -> bool:
    """Whether the word asks for a computation, or for the one of many that is most of something."""
    low = word.lower()
    return low in COMPUTING or (word == low and low not in _NO_SUPERLATIVES and bool(_SUPERLATIVE.fullmatch(low)))


UNITS = frozenset().union(*_SAME_UNITS) - {"eur", "usd"}
"""Units: one of them is never as good as another."""

IDLE_VERBS = word_set(
    """tell tells give gives show shows find get gets know see need needs want wants check list look looks make makes
    help use say says means explain describe read provide fetch retrieve display print have has had having got
    exist exists contain contains figure determine compute calculate evaluate report reports amounts think wonder learn
    understand like love hold holds keep keeps own owns carry stand stands come comes go goes going run runs work works
    ask asking asked answer happen happens there's query search lookup locate enumerate remind inform state name let's
    let follow following concerning regarding according based given""",
)
"""Verbs that say no more than "let me know", "there is" or "it is so"."""

IDLE = (
    (FUNCTION_WORDS - TURNING)
    | IDLE_VERBS
    | word_set(
        """please pls plz thx kindly quick quickly sure hey dear thanks thank great fine good me myself question
        questions information info details detail data figure figures value values figures' amount number overall
        altogether currently current now present what's who's where's when's how's it's that's i'd i'm i've i'll we're
        we've we'd we'll you're you'd they're let's many much all both whole entire entirely complete also then the
        exact precise full own any each"""
    )
)
"""Words that change nothing. They are this list and no others."""

_PHRASES = re.compile(
    r"\b(?:up to|as of|at (?:most|least)|more than|less than|fewer than|greater than|year[- ]to[- ]date|other than|"
    r"as (?:many|much) (?=[^?.!]*\bas\b)|way round|out of|on average|"
    r"(?<!\w )(?:why )?(?:did|had|were) you|(?<!\w )(?:why )?have you(?! (?:got|any))|"
    r"in (?:us|in|on)|instead of|apart from|rather than|square (?=\w)|per cent|as well|in total|vice versa|"
    r"(?:can|could|may|should|shall|must|able to|possible to|enough to|allowed to) (?:(?:i|we|you|they|one|anyone) )?"
    r"(?:still |really )?(?:buy|afford|order|purchase|sell|pay|ship|deliver|reserve|book)|each(?=\W*$)|"
    r"(?:and|or|plus) (?:the )?(?:rest|remainder)(?=\W*$)|"
    r"how many [^?.!]*?(?:buy|afford|order|purchase|sell))\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(?:as well(?! as)|in total|right now|at the moment|how (?:come|many times)|no matter|of course|not only|"
    r"over the (?=last\b|past\b|next\b)|(?<=percent )over (?=\d)|"
    r"find out|work out|figure out|"
    r"go ahead(?= and\b)|look up|no problem|no doubt|but (?=before|after|since|until|only)|"
    r"(?:what|how) about|(?:i|you|we|they|it|that|this|to) mean)\b|^\W*but\b|^\W*good (?:morning|afternoon|evening)\b|"
    r"^\W*(?:please )?return\b(?=\s+(?:the|all|me|my|our|every|each|only|just|what|how|which|\d))|"
    r"(?<=% )over (?=\d)|^\W*(?:if|when) (?:i|we)\b",
    re.IGNORECASE,
)
_GARBLED = re.compile(
    r"(?<![\w.,])\d+,\d{1,2}(?![\d,])|(?<![\w.,])\d+,\d{4,}|(?<!\w)\d+(?:\.\d{3})+,\d+|\b\d+[eE]\d+|½|¼|¾"
    r"|(?<![\w.,])\d+\.\d+[^\W\d_]+\b|(?<![\w.,)])\.\d+\b(?!\.\d)|[~≈]\s?\d[\d.,]*|(?<![\w.,])\d[\d.,]*-?(?:ish|odd)\b"
)
_CODE = re.compile(r"[A-Z]{3}")


def is_code(text: str) -> bool:
    """Whether the text is spelled as the code of a currency or a country is."""
    return bool(_CODE.fullmatch(text))


def same_unit(word: str) -> frozenset[str]:
    """The words for the unit that the word stands for; empty if it stands for none."""
    return next((same for same in _SAME_UNITS if word in same), frozenset())


def are_different_units(word: str, others: Iterable[str]) -> bool:
    """Whether the word is a unit, and among the others are units but not this one."""
    measures = [each for each in others if same_unit(each)]
    return bool(same_unit(word) and measures) and not same_unit(word) & set(measures)


def is_calendar_name(text: str) -> bool:
    """Whether the text is the name of a month or of a day of the week."""
    return text.lower() in WEEKDAYS or text.lower() in MONTHS


def is_negation(word: str) -> bool:
    """Whether the word says what is not meant."""
    low = word.lower().replace("’", "'")
    return low in NEGATIONS or low.endswith("n't") or low.startswith("non-")


def is_turning(word: str) -> bool:
    """Whether the word turns a question into another one."""
    return is_negation(word) or word.lower() in TURNING


def is_idle(word: str) -> bool:
    """Whether the word changes nothing."""
    low = word.lower().replace("’", "'")
    return low in IDLE and not is_turning(low)


def turning_phrases(text: str) -> list[tuple[int, int]]:
    """Where a phrase turns a question that its words would not, such as "up to"."""
    return [match.span() for match in _PHRASES.finditer(text) if not _HARMLESS.fullmatch(match.group())]


def harmless_phrases(text: str) -> list[tuple[int, int]]:
    """Where words that would turn a question do not, such as "of course" or "not only"."""
    return [match.span() for match in _HARMLESS.finditer(text)]


def garbled_numbers(text: str) -> list[tuple[int, int]]:
    """Where a number is written in a way that has two readings, such as "2,5"."""
    return [match.span() for match in _GARBLED.finditer(text)]
