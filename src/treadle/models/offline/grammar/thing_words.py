"""Names of what one asks for, by which nothing is done: a function that is called by them alone only tells of it, also
where nothing else is said of it.

Data only. Read by `naming`.
"""

from treadle.models.offline.grammar.english import word_set

# Hardly ever verbs. What is one as well, such as a book or a film, does not stand here.
THINGS = word_set(
    """account actor airport antonym artist author bmi calculator calendar capital celebrity city climate company
    continent coordinates country currency customer definition department dictionary director distance employee
    encyclopedia fact factorial fibonacci flight forecast geography headline history horoscope hospital hotel
    humidity info joke language lyrics manager member menu movie museum nationality news pharmacy planet
    politician population pronunciation province random recipe restaurant river salary student sunrise sunset
    supermarket synonym teacher team temperature theater theatre time timezone today tomorrow translation
    university user vendor vocabulary weather web wiki wikipedia word world yesterday zodiac"""
)

# They stand between such names, or behind them: `capital_of`, `web_search`.
BESIDE_THINGS = word_set("of in by for number name list lookup search stock")
