"""The reason behind an order: "Cancel order 7 because it is late" is the order to cancel it, whatever the reason.

It says why, and changes nothing of what is to be done, where it is one plain sentence and nothing stands behind that:
"because it is late sounds wrong" is no order. Read by `question`.
"""

import re

from treadle.models.offline.grammar.english import CHANGES, MONTHS, WEEKDAYS, word_set
from treadle.models.offline.grammar.words import is_function_word, is_verb

_ORDER = re.compile(
    r"^\W*(?:(?:please|kindly|now|ok|okay|hey|hi|hello|just)[\s,!]+)*"
    r"(?:(?P<asks>(?:can|could|would|will) you )(?:please )?|"
    r"(?:i|we) (?:want|need|would like) (?:you )?to |(?:i|we)['’]d like (?:you )?to )?(?P<verb>[a-z]+)\s",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r",? because (?=[a-z])", re.IGNORECASE)
_FOR_ME = re.compile(r",? (?:for (?:me|us)|please|thanks)$", re.IGNORECASE)
_SPOILED = re.compile(r"\b(?:just|only|partly|mainly|mostly|not|maybe|perhaps|even|simply)\W*$", re.IGNORECASE)
# What asks or tells, and is no order.
_NO_ORDERS = word_set(
    "what which who whose whom when where why how is are was were do does did has have had can could will would should "
    "shall may might must the a an i we you he she it they this that these those there my our your his her its their "
    "not no never don dont if unless only maybe perhaps"
)
# What says when, takes something back or is put behind any sentence.
_NO_PART = (
    frozenset(MONTHS)
    | WEEKDAYS
    | word_set(
        "today tomorrow tonight yesterday now then noon midnight morning evening afternoon night day week month year "
        "hour minute moment later soon next until case advance please wait actually sorry instead except otherwise "
        "twice again daily weekly monthly although though whereas provided providing assuming supposing given pending "
        "subject nah nope yes yeah yep right ok okay oops lol kidding joking hm hmm maybe perhaps"
    )
)
# The letter by which a word stands in the form of a sentence.
_CLASSES = (
    ("p", word_set("i he she they we nobody there")),
    ("x", word_set("it you somebody someone everybody everyone nothing something everything")),
    ("o", word_set("me us him them")),
    ("e", word_set("her")),
    ("t", word_set("this that these those")),
    ("d", word_set("the a an my our your his its their")),
    ("b", word_set("is are am was were been being isn't aren't wasn't weren't")),
    ("h", word_set("has have had does did do hasn't haven't hadn't doesn't didn't don't")),
    ("q", word_set("too very so quite really")),
    ("m", word_set("not never no longer already still always simply")),
    ("g", word_set("of for to from about into")),
    ("z", word_set("in with")),
    ("a", word_set("away up out off down back over")),
)
_THING = r"(?:[det](?:[wcin]|[winv][win])|n{1,3}|[wi]|[oxe])"
# A mere word behind a verb may be one that takes it back, and leads nothing more.
_PLAIN_THING = r"(?:[det](?:[wcin]|[winv][win])|n{1,3}|[oxe])"
_LED = rf"(?:g{_THING}){{0,2}}"
_SENTENCE = re.compile(
    rf"(?:[pxt]|[det](?:[wcn]|[wnv][wn])|n{{1,3}}|w)(?:"
    rf"h?m*b+[mq]*(?:a|[gz]{_THING}|[wicnv]|[det](?:[wcin]|[winv][win])|i{_THING})a?{_LED}"
    rf"|(?:hm*)?m*[wcv](?:(?:{_PLAIN_THING}a?|a?|q+[wiv]){_LED}|[wi])"
    rf"|h{_PLAIN_THING}{_LED})"
)
_CAUSE = re.compile(rf"(?:[wi]{{2}}|{_THING}){_LED}")
_SHORT = (
    (re.compile(r"\b(it|he|she|that|there)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(you|we|they)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\bi'm\b", re.IGNORECASE), "i am"),
    (re.compile(r"\b[A-Z][\w-]*'s(?=\s)"), "the"),
)
_CHANGING = frozenset().union(*CHANGES)


def without_reason(text: str) -> tuple[str, str]:
    """An order without the reason behind it, and the reason; the text as it is, and nothing, where it has none.

    Args:
        text: a part of a question.
    """
    order, because = _ORDER.match(text), _BECAUSE.search(text)
    if order is None or because is None or order["verb"].lower() in _NO_ORDERS:
        return text, ""
    reason = _FOR_ME.sub("", text[because.end() :].strip().rstrip(" .!?"))
    # A quotation mark before it may open what is to be said.
    spoiled = re.search(r"[\"“”«»`]", text[: because.start()]) or _SPOILED.search(text[: because.start()])
    asks = text.rstrip().endswith("?") and not order["asks"]
    if spoiled or asks or not _is_reason(reason):
        return text, ""
    return text[: because.start()], reason.removeprefix("of ")


def _is_reason(text: str) -> bool:
    """Whether a text is one plain sentence, or "of" and a thing."""
    form = _CAUSE if text.startswith("of ") else _SENTENCE
    plain = text.removeprefix("of ").replace("’", "'")
    for short, whole in _SHORT:
        plain = short.sub(whole, plain)
    if re.search(r"[^\w\s'-]|\d|\s-|-\s", plain):
        return False
    return form.fullmatch("".join(_letter(word) for word in plain.split())) is not None


def _letter(word: str) -> str:
    low = word.lower()
    found = next((letter for letter, words in _CLASSES if low in words), "")
    if found or low in _NO_PART or is_function_word(low):
        return found or "?"
    if word[0].isupper():
        return "n"
    if low in _CHANGING or (is_verb(low) and not low.endswith(("ed", "ing"))):
        # What could be an order of its own is at most the verb, or a noun behind an article.
        return "c"
    return "i" if low.endswith("ing") else "v" if low.endswith("ed") else "w"
