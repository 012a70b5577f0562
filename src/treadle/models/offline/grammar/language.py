"""Language: whether a question is in one that the planner does not read, by the small words that hold it together."""

import re

from treadle.models.offline.grammar.english import word_set

_GERMAN = word_set(
    """wie was wer wo wann warum welche welcher welches welchen wieviel viele viel ist sind war waren hat haben hatte
    wird werden kann können kostet gibt zeige zeig vergleiche berechne nenne liste bitte mir uns ich wir der die das den
    dem des ein eine einen einem einer und oder für fuer mit von vom im am zum zur zwischen nach über ueber auf aus bei
    bis seit ohne nicht kein keine alle pro je gesamt hoch groß mal buche bestelle storniere lösche ändere schicke
    erstelle"""
)
_ENGLISH = word_set(
    """what who where when why how which is are was were has have had can could will would does do did the a an and or
    for with of from to in on at by between after about without not no all per show compare list tell give find book
    cancel order delete send much many me my i we"""
)
_ORDERS = word_set("zeige zeig vergleiche berechne nenne buche bestelle storniere lösche ändere schicke erstelle")
_LEAST = 2


def is_german(text: str) -> bool:
    """Whether a text has more of the small words of German than of those of English, and at least two, or an order."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text)]
    german = sum(word in _GERMAN for word in words)
    english = sum(word in _ENGLISH for word in words)
    return german > english and (german >= _LEAST or any(word in _ORDERS for word in words[:1]))
