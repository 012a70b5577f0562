"""Things held against each other: "Is it warmer in Cairo than in Paris?" as the question for the figure of each.

No verdict is given: the answer tells the figures, and what the question was read as. Read by `model`.
"""

import re

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import is_computing
from treadle.models.offline.grammar.words import is_function_word, singular

_MEASURES = (
    ("cheap|expensive|dear|costly|pricey|pric", ("price", "cost")),
    ("warm|hot|cold|cool|chilly|chill", ("temperature",)),
    ("old|young", ("age",)),
    ("heavy|heavi|light", ("weight",)),
    ("tall", ("height",)),
    ("fast|slow", ("speed",)),
    ("humid", ("humidity",)),
    ("populous", ("population",)),
)
_DEED = {"cost": ("price", "cost"), "earn": ("salary", "pay")}
# What is no thing of which a figure could be told.
_NO_THINGS = word_set(
    "usual usually average normal normally expected expectation expectations needed necessary required planned before "
    "ever now then it that this these those them others other else everybody everyone anybody anyone everything "
    "anything nobody me us you him her most all any enough ordered sold wanted asked possible allowed yesterday today "
    "tomorrow here there inside outside"
)
_DEGREE = r"(?:(?:more|less|most|least) (?P<plain>[a-z]+)|(?P<bent>[a-z]{2,}?)(?:er|est))"
_THE = r"(?:the |an? |our )?"
_NAME = r"[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){0,2}?"
_ONE, _OTHER = rf"{_THE}(?P<one>{_NAME})", rf"{_THE}(?P<other>{_NAME})"
_WHAT = r"[a-z]+(?: [a-z]+)?"
_THIRD = rf"(?:, {_THE}(?P<more>{_NAME}))?"
_END = r"\s*[?.!]*\s*$"
_FORMS = tuple(
    (re.compile(rf"^\W*{form}{_END}", re.IGNORECASE), frame)
    for form, frame in (
        (rf"(?:is it|how much) {_DEGREE} (?:is it )?in {_ONE} than (?:it is )?in {_OTHER}", "in"),
        (rf"(?:is it|where is it) {_DEGREE}[,:]? in {_ONE} or in {_OTHER}", "in"),
        (rf"(?:is|are) {_ONE} {_DEGREE} than {_OTHER}", "of"),
        (rf"how much {_DEGREE} (?:is|are) {_ONE} than {_OTHER}", "of"),
        (rf"(?:which|what|who)(?: one)? is (?:the )?{_DEGREE}[,:]? {_ONE} or {_OTHER}", "of"),
        (rf"(?:which|who) (?:of|among) {_ONE}{_THIRD} (?:and|or) {_OTHER} is (?:the )?{_DEGREE}", "of"),
        (rf"(?:does|do) {_ONE} (?P<deed>cost|earn) (?:more|less) than {_OTHER}", "of"),
        (rf"how much (?:more|less) (?:does|do) {_ONE} (?P<deed>cost|earn) than {_OTHER}", "of"),
        (rf"(?:which|who|what)(?: one)? (?P<deed>cost|earn)s (?:more|less)[,:]? {_ONE} or {_OTHER}", "of"),
        (rf"(?:do|does|has|have) {_ONE} (?:have |has |got )?(?:more|fewer|less) (?P<what>{_WHAT}) than {_OTHER}", "of"),
        (rf"how (?:many|much) (?:more|fewer|less) (?P<what>{_WHAT}) (?:do|does) {_ONE} have than {_OTHER}", "of"),
        (rf"(?:what|which) do we have (?:more|fewer|less) of[,:]? {_ONE} or {_OTHER}", "many"),
        (rf"(?:do|have) we (?:have|got) (?:more|fewer|less) {_ONE} than {_OTHER}", "many"),
        (rf"how many (?:more|fewer) {_ONE} than {_OTHER} do we have", "many"),
        (rf"how many (?:more|fewer) {_ONE} do we have than {_OTHER}", "many"),
        (rf"are there (?:more|fewer) {_ONE} than {_OTHER}(?: in stock)?", "many"),
    )
)


def of_each(text: str) -> list[str]:
    """The questions, the likeliest first, that ask for the figure of each of the things that `text` compares; none if
    it compares none.

    Args:
        text: the question.
    """
    for pattern, frame in _FORMS:
        match = pattern.match(text)
        if match is None:
            continue
        said = match.groupdict()
        names = [name for name in (said.get("one"), said.get("more"), said.get("other")) if name]
        if any(not is_name(name) for name in names):
            continue
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        if frame == "many":
            return [f"How many {listed} do we have?"]
        return [
            f"What {'are' if singular(measure) != measure else 'is'} the {measure} {frame} {listed}?"
            for measure in _measures(said)
        ]
    return []


def is_name(text: str) -> bool:
    """Whether words may be what a thing is called, and do not say when, where, of what or how it is."""
    words = text.lower().split()
    joined = [word for word in words if word != "and"]
    return not any(word in _NO_THINGS or is_function_word(word) or is_computing(word) for word in joined)


def _measures(said: dict[str, str | None]) -> tuple[str, ...]:
    """What measures the degree that is said; nothing for one that several things might."""
    if what := said.get("what"):
        return (what,)
    if deed := said.get("deed"):
        return _DEED[deed.lower()]
    word = (said.get("plain") or said.get("bent") or "").lower()
    undoubled = word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
    for words, measures in _MEASURES:
        stems = words.split("|")
        if any(each in stems or f"{each}e" in stems for each in (word, undoubled)):
            return measures
    return ()
