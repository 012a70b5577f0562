"""What asks something of many things at once: how many, the mean, the sum, which are more than that, which was first.

Forms and short lists of words, and nothing of tools. Read by `plan.picking`, `plan.reckonable` and `plan.reckoning`.
"""

import re

from treadle.models.offline.grammar.english import TELLING_VERBS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token

HOW_MANY = re.compile(r"\b(?:how many|(?:the )?number of)\b|^\W*count\b", re.IGNORECASE)
THERE = re.compile(r"\bthere\b|\b(?:we|you|i) (?:have|own)\b|\bnumber of\b", re.IGNORECASE)
HOW_MUCH = re.compile(r"\bhow much\b", re.IGNORECASE)
PRICED = re.compile(r"\bhow much (?:is|are|for|does|do)\b|\bcosts?\b", re.IGNORECASE)
MEAN = re.compile(r"\b(?:on average|average|mean)\b", re.IGNORECASE)
SUM = re.compile(
    r"\b(?:in (?:total|all)|total|sum of|combined|altogether|all together|together|overall)\b", re.IGNORECASE
)
APART = re.compile(
    r"\b(?:how (?:much|many) (?:more|less|fewer|[a-z]+er)\b(?=.*\bthan\b)|difference (?=(?:in|between)\b))",
    re.IGNORECASE,
)
# They hold a sentence together. "To", "from", "or", "was", "will" and their like say more than that.
FILLERS = word_set(
    "a an the of in at on by for with is are has have do does we you i our my me us there that which who what "
    "been got still yet already currently now and all please tell show give list name find count calculate compute get"
)
ASKED = word_set("when where who")
QUESTION = re.compile(
    r"^\W*(?:(?:and|so) )?(?:(?:in|on|at|of|from) )?(?:what|which|who|whose|when|where|how)\b|"
    r"^\W*(?:the )?(?:[a-z]+ ){1,2}of\b|['’]s? (?:[a-z]+ )?[a-z]+\W*$",
    re.IGNORECASE,
)
# What asks whether something is so of one thing.
STATED = re.compile(
    r"^\W*(?:(?:and|so) )?(?:(?P<having>(?:does|do)(?= .*\bhave\b)|(?:has|have)(?= .*\b(?:an?|any)\b))|"
    r"is|are|was|were|has|have)\b(?! (?:you|there|it|this|that)\b)",
    re.IGNORECASE,
)
WORK = ("work", "works")
WHO_IS_THE = re.compile(r"^\W*(?:and |so )?who(?:['’]s| is| was) the ([a-z]+) of\b", re.IGNORECASE)
WHO_IS_IN = re.compile(r"^\W*(?:and |so )?who(?:['’]s| is| are| was| were)? (?:in|at|on)\b", re.IGNORECASE)
PLACING = word_set("to from in at on for by of")
BOUND = re.compile(
    r"\b(?:(?P<ge>at least|no less than|no fewer than)|(?P<le>at most|up to|no more than)|"
    r"(?P<gt>more than|over|above|(?:greater|higher|larger|bigger|longer) than|after)|"
    r"(?P<lt>(?:less|fewer|lower|smaller|shorter) than|under|below|before)|(?P<by>(?:(?:more|less) )?[a-z]+ than)) "
    r"(?P<number>\d{4}-\d{2}-\d{2}|\d[\d,]*(?:\.\d+)?)(?![\w%])",
    re.IGNORECASE,
)
_NUMBER = r"\d{4}-\d{2}-\d{2}|\d[\d,]*(?:\.\d+)?"
RANGE = re.compile(rf"\bbetween (?P<number>{_NUMBER}) and (?P<upto>{_NUMBER})(?![\w%])", re.IGNORECASE)
DAYS = word_set("after before")
NEGATED = re.compile(
    r"(?:(?:\bnot|n['’]t)(?: yet)?(?: (?:works?|lives?|be|runs?) (?:in|at|for|on))?|"
    r"\b(?:except(?: for)?|excluding|but not|other than|apart from))(?: the)?\s+$",
    re.IGNORECASE,
)
LACKING = re.compile(
    r"\b(?:((?:without|(?:with|has|have) no))(?: an?| any)?|(out of)|(negative)|(in)(?= stock\b)) ", re.IGNORECASE
)
NUMBER_OF = re.compile(r"\bnumber of (?=[a-z])", re.IGNORECASE)
BETWEEN = re.compile(r"\b(?:than|between)\b", re.IGNORECASE)
FIRST = re.compile(r"\b([a-z]+) (?:(first|earliest|soonest)|last|latest)(?=\W*$)", re.IGNORECASE)
# "Flats with 3 rooms": what each has, and how many.
HELD = re.compile(r"\b(?:have|has|with) (?:\d+|[a-z]+) ([a-z]+)\b", re.IGNORECASE)
# "Tickets 1 and 3": a noun, and the numbers that its things are called by.
NUMBERED = re.compile(r"\b([a-z]+) (\d+(?:(?:,? and |, )\d+)*)\b(?![.,]\d)", re.IGNORECASE)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ORDINAL = re.compile(rf"\b({'|'.join(ORDINALS)}|last) ([a-z]+)\b", re.IGNORECASE)
SIGNS = re.compile(r"[*%#~≈&+]")
# What has what is asked for, though it is called by a plain word: "How many replicas does web have?", "Is web healthy?"
HAVING = re.compile(
    r"^\W*(?:(?:and|so) )?(?:how many [a-z]+ (?:does|do) ([a-z-]+) have|what is the [a-z]+ of ([a-z-]+)|"
    r"(?:is|are) ([a-z-]+) [a-z-]+)\W*$",
    re.IGNORECASE,
)
OF_WHAT = re.compile(r"^\W*what (?:is|are) the ([a-z]+(?: [a-z]+)?) of (?=the\b)", re.IGNORECASE)
FORMS = (MEAN, SUM, APART, FIRST)
TOLD_TO = ("show", "tell", "give", "list", "find", "get")
MANY_PEOPLE = word_set("people persons")


def asks(clause: Clause) -> bool:
    """Whether a clause asks for more than yes or no, or what is so of one thing, and orders nothing but to be told."""
    telling = clause.command is None or clause.command in TELLING_VERBS
    asking = not clause.is_yes_or_no or STATED.match(clause.text) is not None
    return telling and asking and SIGNS.search(clause.text) is None


def works(clause: Clause, token: Token) -> bool:
    """Whether a word says that somebody works, or something runs, somewhere: then it is where that is that tells which
    of them are meant."""
    where = clause.words_after(token.end, 1) in (("in",), ("at",), ("for",), ("on",))
    return where and token.low in {*WORK, "run", "runs", "stands"}


def is_written_large(token: Token) -> bool:
    """Whether a word has a capital where it opens nothing: of "the average salary in IT" the last is no "it"."""
    return token.start > 0 and token.text[0].isupper() and token.text != "I"


def is_own(clause: Clause, token: Token) -> bool:
    """Whether a token is only the end of "what's" or of "Nord's"."""
    return token.low == "s" and clause.text[token.start - 1 : token.start] in ("'", "’")
